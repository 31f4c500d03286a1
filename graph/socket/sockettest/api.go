// Package sockettest is a small API for the tests of transports: its streams say what a test has them say.
package sockettest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/graph/feed"
	"tidemark/internal/auth"
	"tidemark/internal/fault"
)

const schema = `
scalar Any
type Query {
  hello: String!
  me: String!                # the name of the viewer
  echo(x: Any): String!      # how x arrived
  refused: String!           # answers without data
  nothing: String!           # does not answer
  panics: String!
}
type Mutation { wait: String! }   # says so on Waiting, until Go is closed or its context has ended
type Subscription {
  values: Any!               # opens a Tap
  encoded: Any!              # opens one whose values are encoded past the executor
  refusedStream: Any!        # opens none
  slowStream: Any!           # waits for its context
}`

// API executes the schema. Errors of streams are those that Fail has set.
type API struct {
	Opened  chan *Tap     // the streams, in the order in which they are opened
	Waiting chan struct{} // a mutation has begun to wait
	Go      chan struct{} // closed: the mutations that wait go on

	schema *ast.Schema
	fail   atomic.Pointer[gqlerror.Error]
	panics atomic.Bool
}

var _ graphql.ExecutableSchema = (*API)(nil)

// New returns an API.
func New() *API {
	return &API{
		Opened: make(chan *Tap, 20_000), Waiting: make(chan struct{}, 100), Go: make(chan struct{}),
		schema: gqlparser.MustLoadSchema(&ast.Source{Input: schema}),
	}
}

// Fail has all streams answer with an error and no data; with an empty code, no longer.
func (a *API) Fail(code fault.Code) {
	if code == "" {
		a.fail.Store(nil)
		return
	}
	a.fail.Store(&gqlerror.Error{Message: "fails", Extensions: map[string]any{"code": string(code)}})
}

// Panic has all streams panic.
func (a *API) Panic() { a.panics.Store(true) }

// Schema implements graphql.ExecutableSchema.
func (a *API) Schema() *ast.Schema { return a.schema }

// Complexity implements graphql.ExecutableSchema.
func (a *API) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Exec implements graphql.ExecutableSchema.
func (a *API) Exec(ctx context.Context) graphql.ResponseHandler {
	operation := graphql.GetOperationContext(ctx)
	field := graphql.CollectFields(operation, operation.Operation.SelectionSet, nil)[0]
	answer := func(value string) graphql.ResponseHandler {
		return graphql.OneShot(&graphql.Response{Data: fmt.Appendf(nil, `{%q:%q}`, field.Alias, value)})
	}
	switch field.Name {
	case "hello":
		return answer("world \u2028 <b>")
	case "me":
		viewer, err := auth.ViewerFrom(ctx)
		if err != nil {
			return refusal(fault.CodeOf(err))
		}
		return answer(viewer.Name)
	case "echo":
		return answer(fmt.Sprintf("%T %v", operation.Variables["x"], operation.Variables["x"]))
	case "nothing":
		return func(context.Context) *graphql.Response { return nil }
	case "panics":
		panic("secret")
	case "wait":
		a.Waiting <- struct{}{}
		select {
		case <-a.Go:
			return answer("done")
		case <-ctx.Done():
			return refusal(fault.Unavailable)
		}
	case "values":
		return a.values(ctx, field.Alias, nil)
	case "encoded":
		return a.values(ctx, field.Alias, func(value json.RawMessage) []byte { return fmt.Appendf(nil, `{%q:%s}`, field.Alias, value) })
	case "slowStream":
		<-ctx.Done()
		return refusal(fault.Unavailable)
	default:
		return refusal(fault.Forbidden)
	}
}

func (a *API) values(ctx context.Context, name string, encode feed.Encoder[json.RawMessage]) graphql.ResponseHandler {
	tap := &Tap{Closed: make(chan struct{})}
	values, err := feed.Open(ctx, tap, encode)
	if err != nil {
		return refusal(fault.Internal)
	}
	a.Opened <- tap
	var buffer bytes.Buffer // is used again, as gqlgen does
	return func(ctx context.Context) *graphql.Response {
		select {
		case value := <-values:
			if a.panics.Load() {
				panic("secret")
			}
			if err := a.fail.Load(); err != nil {
				return &graphql.Response{Data: json.RawMessage("null"), Errors: gqlerror.List{err}}
			}
			buffer.Reset()
			fmt.Fprintf(&buffer, `{%q:%s}`, name, value)
			return &graphql.Response{Data: buffer.Bytes()}
		case <-ctx.Done():
			return nil
		}
	}
}

func refusal(code fault.Code) graphql.ResponseHandler {
	return graphql.OneShot(&graphql.Response{
		Errors: gqlerror.List{{Message: "refused", Extensions: map[string]any{"code": string(code)}}},
	})
}

// Tap is a stream of JSON values. Of what waits, it keeps the newest.
type Tap struct {
	Closed chan struct{} // closed by Close

	mu     sync.Mutex
	wake   func()
	last   string
	some   bool
	always bool
	err    error
	taken  int
	closed bool
}

// Say has the stream say a value.
func (t *Tap) Say(value string) {
	t.wait(func() { t.last, t.some = value, true })
}

// Flood has the stream say a value again and again.
func (t *Tap) Flood(value string) {
	t.wait(func() { t.last, t.some, t.always = value, true, true })
}

// End ends the stream with an error.
func (t *Tap) End(err error) {
	t.wait(func() { t.err = err })
}

func (t *Tap) wait(begin func()) {
	t.mu.Lock()
	begin()
	wake := t.wake
	t.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Taken is how many values were taken so far.
func (t *Tap) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// Next implements feed.Stream.
func (t *Tap) Next() (json.RawMessage, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, false, t.err
	}
	if !t.some {
		return nil, false, nil
	}
	t.some = t.always && !t.closed
	t.taken++
	return json.RawMessage(t.last), true, nil
}

// Notify implements feed.Stream. It calls wake with a lock held, as a stream may.
func (t *Tap) Notify(wake func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake = wake
	if t.some || t.err != nil {
		wake()
	}
}

// Again implements feed.Stream.
func (t *Tap) Again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.some = true
	t.wake()
}

// Close implements feed.Stream.
func (t *Tap) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.Closed)
	}
}
