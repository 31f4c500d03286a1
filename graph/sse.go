package graph

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/graph/socket"
	"tidemark/internal/auth"
)

// events answers with server-sent events, as GraphQL over SSE has it in its "distinct connections mode": one operation
// is one request, and its responses are events named next. The event complete says that nothing will follow, and
// that clients need not come back. A subscription has it only after an error; otherwise it ends with its connection.
type events struct {
	calls
	sockets      *socket.Transport
	report       report
	keepAlive    time.Duration
	writeTimeout time.Duration
}

// Supports implements graphql.Transport.
func (events) Supports(r *http.Request) bool {
	likes := negotiate(r.Header.Values("Accept"))
	return likes.events > 0 && likes.events >= likes.liking && (get{}.Supports(r) || post{}.Supports(r))
}

// Do implements graphql.Transport.
func (e events) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	params, ok := e.params(w, r)
	if !ok {
		return
	}
	operation, errs := exec.CreateOperationContext(r.Context(), params)
	switch {
	case errs != nil:
		e.answer(w, r, exec.DispatchError(graphql.WithOperationContext(r.Context(), operation), errs))
	case operation.Operation.Operation == ast.Subscription:
		e.follow(w, r, exec, operation)
	case mayExecute(w, r, operation):
		ctx, cancel := context.WithTimeout(r.Context(), e.timeout)
		defer cancel()
		e.answer(w, r, execute(ctx, exec, operation))
	}
}

// answer answers by one response: an event only for callers who like that better than to be answered as usual, because
// some say of all that they send that they can read either.
func (e events) answer(w http.ResponseWriter, r *http.Request, response *graphql.Response) {
	if likes := negotiate(r.Header.Values("Accept")); likes.liking >= likes.events {
		w.Header().Set("Content-Type", likes.media+"; charset=utf-8")
		write(w, likes.media, response)
		return
	}
	s := newEventStream(w, e.writeTimeout, func() {})
	defer s.end()
	if s.begin() == nil {
		s.last(response)
	}
}

// follow opens the stream of a subscription, and tells what it says for as long as somebody listens.
func (e events) follow(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor, operation *graphql.OperationContext) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := newEventStream(w, e.writeTimeout, cancel)
	if viewer, err := auth.ViewerFrom(ctx); err == nil { // who is nobody is refused where everybody is
		leave, refusal := e.sockets.Enter(viewer.ID, s)
		if refusal != nil {
			refuse(w, r, statusOf(gqlerror.List{present(ctx, refusal)}), refusal)
			return
		}
		defer leave()
	}
	defer s.end()
	if expiry, expires := auth.Expiry(ctx); expires {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, expiry)
		defer stop()
	}
	s.listen()

	var live socket.Live
	defer live.Close()
	ctx, refused, err := live.Open(ctx, cancel, exec, operation, e.timeout)
	if err != nil {
		refused = e.failure(ctx, err)
	}
	if refused != nil {
		e.answer(w, r, &graphql.Response{Errors: refused})
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil { // too late to answer with it
			_ = e.report.recovered(ctx, panicked)
		}
	}()
	w.Header().Set("Connection", "close") // what the stream has done to its deadlines ends with it
	if s.begin() == nil {
		e.tell(ctx, &live, s)
	}
	if s.slow && !s.isAborted() {
		e.sockets.TooSlow()
	}
}

// tell sends what a subscription says until ctx has ended, the stream is drained, or it cannot go on.
func (e events) tell(ctx context.Context, live *socket.Live, s *eventStream) {
	woken := make(chan struct{}, 1)
	live.Notify(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	silence := time.NewTicker(e.keepAlive)
	defer silence.Stop()
	var retry <-chan time.Time // while something is to be tried again, nothing else is
	for {
		next := woken
		if retry != nil {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-s.drained:
			return
		case <-silence.C:
			if s.write([]byte(":\n\n")) != nil {
				return
			}
			continue
		case <-next:
		case <-retry:
		}
		retry = nil
		switch err := e.tellNext(ctx, live, s, woken); {
		case errors.Is(err, socket.ErrLater):
			retry = time.After(socket.RetryAfter)
		case err != nil:
			return
		}
	}
}

// tellNext sends what waits, if something does, and looks again later if there may be more.
func (e events) tellNext(ctx context.Context, live *socket.Live, s *eventStream, woken chan<- struct{}) error {
	response, some, err := live.Next(ctx)
	switch {
	case errors.Is(err, socket.ErrLater) || ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case err != nil:
		s.last(&graphql.Response{Errors: e.failure(ctx, err)})
		return err
	case !some:
		return nil
	}
	select {
	case woken <- struct{}{}:
	default:
	}
	return s.next(response)
}

// failure is how a caller is told of an error that only the log has to know more about.
func (e events) failure(ctx context.Context, err error) gqlerror.List {
	errs := gqlerror.List{present(ctx, err)}
	e.report.log(ctx, errs)
	return errs
}
