package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/person"
)

// outcome is what became of a call's token. The viewer, if there is one, is in the context by itself.
type outcome struct {
	expiry  time.Time
	refusal error
}

type outcomeKey struct{}

// Bearer returns the token of an Authorization header, and false where it holds none of the Bearer scheme.
func Bearer(header string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		return "", false
	}
	return token, true
}

// Authenticate returns ctx with the viewer of an Authorization header in it, for ViewerFrom, Expiry and
// person.FromContext. Without a good token ctx has no viewer, and ViewerFrom says why.
func (v *Verifier) Authenticate(ctx context.Context, header string) context.Context {
	token, ok := Bearer(header)
	if !ok {
		return ctx
	}
	viewer, expiry, err := v.Verify(ctx, token)
	if err == nil {
		ctx = person.NewContext(ctx, viewer)
	}
	return context.WithValue(ctx, outcomeKey{}, outcome{expiry: expiry, refusal: err})
}

// Middleware authenticates every request by its Authorization header. It refuses none: what needs a viewer asks
// ViewerFrom, and answers with the error that it gets there.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(v.Authenticate(r.Context(), r.Header.Get("Authorization"))))
	})
}

// ViewerFrom returns the viewer of a call, or the error to answer with: the refusal of the token that came with the
// call, and where none came, how to send one.
func ViewerFrom(ctx context.Context) (person.Viewer, error) {
	if viewer, ok := person.FromContext(ctx); ok {
		return viewer, nil
	}
	if o, ok := ctx.Value(outcomeKey{}).(outcome); ok && o.refusal != nil {
		return person.Viewer{}, o.refusal
	}
	return person.Viewer{}, fault.New(fault.Unauthenticated, "sign in: send the header Authorization: Bearer TOKEN")
}

// Expiry returns the instant from which on the call's token is no longer accepted, and false where the call
// carries no good one.
func Expiry(ctx context.Context) (time.Time, bool) {
	o, ok := ctx.Value(outcomeKey{}).(outcome)
	return o.expiry, ok && o.refusal == nil
}
