package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/fault"
)

var errDuplicate = errors.New("an operation of this id runs")

// operation is one that a client asked for: until it is answered, or as long as its stream is open.
type operation struct {
	Live
	id       string
	quoted   []byte // the id as JSON
	cancel   context.CancelFunc
	delivery atomic.Int32
	open     bool        // its stream is; guarded by the connection's mu
	retry    *time.Timer // likewise
}

// leaveAloneLocked has the delivery not go on later. It is called with the connection's mu held.
func (o *operation) leaveAloneLocked() {
	if o.retry != nil {
		o.retry.Stop()
	}
}

// release frees what an operation holds, when it is none of the connection's any more.
func (o *operation) release() {
	o.cancel()
	o.Close()
}

// subscribe begins an operation, and returns how to execute it.
func (c *conn) subscribe(ctx context.Context, m message) (execute func()) {
	switch {
	case !c.open:
		c.end(codeNotSignedIn, "Unauthorized")
		return nil
	case m.ID == "" || len(m.ID) > maxIDBytes:
		c.end(codeBadMessage, fmt.Sprintf("subscribe needs an id of 1 to %d bytes", maxIDBytes))
		return nil
	}
	in, err := params(m.Payload)
	if err != nil {
		c.end(codeBadMessage, err.Error())
		return nil
	}
	quoted, err := json.Marshal(m.ID)
	if err != nil {
		panic(err) // strings are JSON
	}
	ctx, cancel := context.WithCancel(ctx)
	o := &operation{id: m.ID, quoted: quoted, cancel: cancel}
	begun, err := c.begin(o)
	if begun {
		return func() { c.execute(ctx, o, in) }
	}
	cancel()
	switch {
	case errors.Is(err, errDuplicate):
		c.end(codeDuplicate, "Subscriber for "+m.ID+" already exists")
	case err != nil:
		f := c.t.getFrames()
		defer c.t.putFrames(f)
		f.failure(quoted, gqlerror.List{c.present(ctx, err)})
		c.send(f.buffer.Bytes())
	}
	return nil
}

// begin adds an operation, unless the connection is about to end, or there is an error.
func (c *conn) begin(o *operation) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over || c.draining:
		return false, nil
	case c.operations[o.id] != nil:
		return false, errDuplicate
	case c.calls+c.live >= c.t.config.MaxOperations:
		return false, fault.New(fault.TooManySubscriptions, "a connection has at most %d operations at a time", c.t.config.MaxOperations)
	}
	if c.operations == nil {
		c.operations = make(map[string]*operation)
	}
	c.operations[o.id] = o
	c.calls++
	c.t.calls.Add(1)
	return true, nil
}

// executed counts an operation that was begun as answered, or if its stream is open, as that.
func (c *conn) executed(o *operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.operations[o.id] == o {
		o.open = true
		c.live++
		c.t.subscriptions.Add(1)
	}
	c.t.calls.Add(-1)
	if c.calls--; c.calls == 0 && c.rested != nil {
		close(c.rested)
		c.rested = nil
	}
}

// completed ends an operation because the client says so.
func (c *conn) completed(id string) {
	c.mu.Lock()
	o := c.operations[id]
	c.mu.Unlock()
	if o != nil && c.remove(o) {
		o.release()
	}
}

func (c *conn) runs(o *operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.operations[o.id] == o
}

// remove takes an operation out, and reports whether it was still there.
func (c *conn) remove(o *operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.operations[o.id] != o {
		return false
	}
	delete(c.operations, o.id)
	if o.open {
		c.live--
		c.t.subscriptions.Add(-1)
	}
	o.leaveAloneLocked()
	return true
}

// execute answers an operation, or opens its stream.
func (c *conn) execute(ctx context.Context, o *operation, in *graphql.RawParams) {
	defer c.executed(o)
	ctx = graphql.StartOperationTrace(ctx)
	operation, errs := c.exec.CreateOperationContext(ctx, in)
	if errs != nil {
		c.fail(o, c.exec.DispatchError(graphql.WithOperationContext(ctx, operation), errs).Errors)
		return
	}
	shareText(operation)
	if operation.Operation.Operation == ast.Subscription {
		c.follow(ctx, o, operation)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.t.config.CallTimeout)
	defer cancel()
	respond, ctx := c.exec.DispatchOperation(ctx, operation)
	response := respond(ctx)
	switch {
	case response == nil || response.Data == nil && len(response.Errors) == 0:
		c.failWith(ctx, o, errors.Join(errNoAnswer, ctx.Err()))
	case response.Data == nil:
		c.fail(o, response.Errors)
	default:
		f := c.t.getFrames()
		f.next(o.quoted, response)
		f.complete(o.quoted)
		c.sendLast(o, f)
	}
}

// shareText lets an operation that may stay for hours have the text of its query in common with all that have the
// same: the parsed document holds it anyway.
func shareText(operation *graphql.OperationContext) {
	if at := operation.Operation.Position; at != nil && at.Src != nil && at.Src.Input == operation.RawQuery {
		operation.RawQuery = at.Src.Input
	}
}

// fail ends an operation with errors.
func (c *conn) fail(o *operation, errs gqlerror.List) {
	f := c.t.getFrames()
	f.failure(o.quoted, errs)
	c.sendLast(o, f)
}

// failWith ends an operation with an error that has not been presented yet.
func (c *conn) failWith(ctx context.Context, o *operation, err error) {
	c.fail(o, gqlerror.List{c.present(ctx, err)})
}

// present is how a client is told of an error. The log is told what the client is not.
func (c *conn) present(ctx context.Context, err error) *gqlerror.Error {
	shown := c.t.config.Present(ctx, err)
	if shown.Err != nil {
		c.t.config.Logger.LogAttrs(ctx, slog.LevelWarn, "an operation of a socket failed", slog.Any("error", shown.Err))
	}
	return shown
}
