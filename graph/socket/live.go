package socket

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/graph/feed"
	"tidemark/internal/fault"
)

// RetryAfter is how long a value whose response could not be had is left alone before it is tried again.
const RetryAfter = time.Second

// ErrLater says that what waits could not be delivered, and waits again: it is to be tried after RetryAfter.
var ErrLater = errors.New("cannot be delivered for now")

var (
	errNoAnswer = errors.New("the operation ended without an answer")
	errNoStream = errors.New("the subscription opened no stream")
)

// Live is a subscription from the transport's side: the stream that its resolver opens, and the responses that
// come of it. It is used once.
type Live struct {
	feed    feed.Feed
	respond graphql.ResponseHandler
}

// Open has the stream opened. It may take as long as within; cancel, which ends ctx, is called if it takes longer, and
// not any more once there is a stream. The context that is returned is for Next. Where there is no stream there are
// errors: those of the response, or one that nobody was told of yet.
func (l *Live) Open(
	ctx context.Context, cancel context.CancelFunc, exec graphql.GraphExecutor, operation *graphql.OperationContext, within time.Duration,
) (opened context.Context, answered gqlerror.List, failed error) {
	overdue := time.AfterFunc(within, cancel)
	l.respond, opened = exec.DispatchOperation(feed.NewContext(ctx, &l.feed), operation)
	if l.feed.Opened() {
		if !overdue.Stop() {
			return opened, nil, errors.Join(errNoAnswer, context.DeadlineExceeded)
		}
		return opened, nil, nil
	}
	response := l.respond(opened)
	switch inTime := overdue.Stop(); {
	case response != nil && len(response.Errors) > 0:
		return opened, response.Errors, nil
	case !inTime:
		return opened, nil, errors.Join(errNoAnswer, context.DeadlineExceeded)
	default:
		return opened, nil, errors.Join(errNoStream, ctx.Err())
	}
}

// Notify has wake called when Next has something, and at once if it does. wake must not block.
func (l *Live) Notify(wake func()) { l.feed.Notify(wake) }

// Next returns the response to what waits, if something does. It is called by one goroutine at a time, and the
// response is good until the next call. After an error other than ErrLater nothing more will come.
func (l *Live) Next(ctx context.Context) (response *graphql.Response, some bool, err error) {
	data, some, err := l.feed.Take()
	switch {
	case err != nil || !some:
		return nil, false, err
	case data != nil:
		return &graphql.Response{Data: data}, true, nil
	}
	response = l.respond(ctx)
	switch {
	case response == nil:
		return nil, false, errors.Join(errNoAnswer, ctx.Err())
	case passes(response):
		l.feed.Again()
		return nil, false, ErrLater
	}
	return response, true, nil
}

// Close ends the stream. It may be called at any time.
func (l *Live) Close() { l.feed.Close() }

// passes reports whether a response says nothing but that something is away, or not there yet: the state that it
// should have told of is still to come.
func passes(response *graphql.Response) bool {
	if len(response.Errors) == 0 || response.Data != nil && !bytes.Equal(response.Data, []byte("null")) {
		return false
	}
	for _, e := range response.Errors {
		code, _ := e.Extensions["code"].(string)
		if code != string(fault.Unavailable) && code != string(fault.NotFound) {
			return false
		}
	}
	return true
}

// The states of a delivery.
const (
	asleep  int32 = iota // a wake starts it
	working              // it takes what waits
	woken                // and has to look once more before it sleeps
	paused               // it goes on after RetryAfter, whatever happens until then
)

// follow opens the stream of a subscription, and has what it says delivered.
func (c *conn) follow(ctx context.Context, o *operation, operation *graphql.OperationContext) {
	ctx, answered, failed := o.Open(ctx, o.cancel, c.exec, operation, c.t.config.CallTimeout)
	switch {
	case answered != nil:
		c.fail(o, answered)
	case failed != nil:
		c.failWith(ctx, o, failed)
	default:
		o.Notify(func() { c.wake(ctx, o) })
	}
}

// wake makes sure that what waits is delivered. It only ever starts one goroutine for an operation.
func (c *conn) wake(ctx context.Context, o *operation) {
	for {
		switch o.delivery.Load() {
		case asleep:
			if o.delivery.CompareAndSwap(asleep, working) {
				c.spawn(ctx, func() { c.deliver(ctx, o) })
				return
			}
		case working:
			if o.delivery.CompareAndSwap(working, woken) {
				return
			}
		default:
			return
		}
	}
}

// deliver sends what waits until nothing does.
func (c *conn) deliver(ctx context.Context, o *operation) {
	for {
		response, some, err := o.Next(ctx)
		switch {
		case errors.Is(err, ErrLater):
			c.pause(ctx, o)
			return
		case err != nil:
			c.failWith(ctx, o, err)
			return
		case some:
			if !c.sendNext(o, response) {
				return // it has ended, and what was taken last was not written
			}
		case o.delivery.CompareAndSwap(working, asleep):
			return
		default:
			o.delivery.Store(working)
		}
	}
}

// pause has the delivery go on later.
func (c *conn) pause(ctx context.Context, o *operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.delivery.Store(paused)
	if c.operations[o.id] != o {
		return
	}
	o.retry = time.AfterFunc(RetryAfter, func() {
		o.delivery.Store(working)
		c.spawn(ctx, func() { c.deliver(ctx, o) })
	})
}
