package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/fault"
)

const (
	// maxErrors bounds the errors of one response.
	maxErrors = 50
	// maxMessageBytes bounds an error's message: a parser's quotes what it cannot read.
	maxMessageBytes = 300
	// persistedQueryNotFound is a code of gqlgen that it has no exported name for.
	persistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"
)

// errPanicked stands for a panic, which the log has been told of.
var errPanicked = errors.New("panicked")

// present turns an error into what a client is told of it: a fault's own message, a protocol error's, and of any
// other that there was one. The cause that the log should be told of stays with it, and is not sent.
func present(ctx context.Context, err error) *gqlerror.Error {
	var given *gqlerror.Error
	if !errors.As(err, &given) {
		given = gqlerror.WrapPath(graphql.GetPath(ctx), err)
	}
	path, input := splitPath(ctx, given.Path)
	reason := reasonOf(ctx, given, input)
	shown := &gqlerror.Error{
		Err:        reason.Err,
		Message:    clip(reason.Message),
		Path:       path,
		Locations:  given.Locations,
		Extensions: map[string]any{"code": string(reason.Code)},
	}
	if reason.Argument != "" {
		shown.Extensions["argument"] = clip(reason.Argument)
	}
	if reason.RetryAfter > 0 {
		shown.Extensions["retryAfterMs"] = (reason.RetryAfter + time.Millisecond - 1).Milliseconds()
	}
	return shown
}

// splitPath parts the path of an error into that of the field and the name of what could not be read, if it was
// that: an argument, or before there are fields, a variable.
func splitPath(ctx context.Context, path ast.Path) (field ast.Path, input string) {
	at := graphql.GetFieldContext(ctx)
	switch {
	case at != nil && len(path) > len(at.Path()):
		field = at.Path()
		return field, path[len(field):].String()
	case at == nil && len(path) > 1 && path[0] == ast.PathName("variable"):
		return nil, "$" + path[1:].String()
	default:
		return path, ""
	}
}

// reasonOf is the fault that an error is told as. Its Err is what the log should be told, if anything.
func reasonOf(ctx context.Context, given *gqlerror.Error, input string) *fault.Error {
	cause := error(given)
	if given.Err != nil {
		cause = given.Err
	}
	code, _ := given.Extensions["code"].(string)
	var f *fault.Error
	switch {
	case errors.Is(cause, context.Canceled) && ctx.Err() != nil: // the caller is gone
		return fault.NotAvailable(nil)
	case errors.As(cause, &f) && f.Code != fault.Internal:
		told := *f
		told.Err = nil
		if f.Code == fault.Unavailable && f.Err != nil {
			told.Err = cause
		}
		return &told
	case errors.Is(cause, context.DeadlineExceeded):
		return fault.NotAvailable(cause)
	case input != "" && code == errcode.ValidationFailed:
		return unfitVariable(input, given.Message)
	case code != "": // gqlgen's own
		return &fault.Error{Code: fault.Code(code), Message: given.Message}
	case input != "": // gqlgen's scalars and enums
		return fault.BadInput(input, "must be of the type that the schema says")
	case errors.Is(cause, errPanicked):
		cause = nil
	}
	return &fault.Error{Code: fault.Internal, Message: "internal error", Err: cause}
}

func unfitVariable(name, rule string) *fault.Error {
	if _, kind, found := strings.Cut(rule, " as "); found && strings.HasPrefix(rule, "cannot use ") {
		rule = "cannot be used as " + kind // what stands between is not always what was given
	}
	return &fault.Error{Code: errcode.ValidationFailed, Message: name + " " + rule, Argument: name}
}

// clip cuts a text that may quote a caller.
func clip(text string) string {
	if len(text) > maxMessageBytes {
		text = strings.ToValidUTF8(text[:maxMessageBytes], "") + "…"
	}
	return text
}

// report tells the log of what went wrong inside, and keeps responses from being all errors.
type report struct{ logger *slog.Logger }

var (
	_ graphql.HandlerExtension    = report{}
	_ graphql.ResponseInterceptor = report{}
)

// ExtensionName implements graphql.HandlerExtension.
func (report) ExtensionName() string { return "Report" }

// Validate implements graphql.HandlerExtension.
func (report) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptResponse implements graphql.ResponseInterceptor.
func (r report) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response == nil {
		return nil
	}
	if more := len(response.Errors) - maxErrors; more > 0 {
		response.Errors = append(response.Errors[:maxErrors:maxErrors], &gqlerror.Error{
			Message:    fmt.Sprintf("and %d errors more", more),
			Extensions: response.Errors[maxErrors].Extensions,
		})
	}
	r.log(ctx, response.Errors)
	return response
}

// log tells of each cause once: what fails for one field of a list fails for all.
func (r report) log(ctx context.Context, errs gqlerror.List) {
	told := make(map[string]bool)
	for _, e := range errs {
		if e.Err == nil || told[e.Err.Error()] {
			continue
		}
		told[e.Err.Error()] = true
		level, message := slog.LevelWarn, "a part is away"
		if e.Extensions["code"] == string(fault.Internal) {
			level, message = slog.LevelError, "internal error"
		}
		r.logger.LogAttrs(ctx, level, message, operationName(ctx), slog.String("path", e.Path.String()), slog.Any("error", e.Err))
	}
}

// recovered is a graphql.RecoverFunc.
func (r report) recovered(ctx context.Context, panicked any) error {
	r.logger.LogAttrs(ctx, slog.LevelError, "panic", operationName(ctx), slog.String("path", graphql.GetPath(ctx).String()),
		slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	return errPanicked
}

func operationName(ctx context.Context) slog.Attr {
	var name string
	if graphql.HasOperationContext(ctx) {
		if op := graphql.GetOperationContext(ctx).Operation; op != nil {
			name = op.Name
		}
	}
	return slog.String("operation", clip(name))
}
