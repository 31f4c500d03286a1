package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/fault"
)

const (
	mediaJSON = "application/json"
	// mediaGraphQL differs in that the status of a request which could not be executed is not 200.
	mediaGraphQL = "application/graphql-response+json"
	// mediaEvents is for answers that do not end.
	mediaEvents = "text/event-stream"

	callMethods = "GET, POST, OPTIONS"
)

var errNoAnswer = errors.New("the operation ended without an answer")

// calls answers requests that are one query or mutation each, as GraphQL over HTTP has it.
type calls struct {
	maxBytes int64
	timeout  time.Duration
}

// post takes queries and mutations as JSON, and as nothing else: no form or text that a page of another origin
// could send without a preflight.
type post struct{ calls }

// Supports implements graphql.Transport.
func (post) Supports(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && err == nil && media == mediaJSON
}

// get takes queries in the URL.
type get struct{ calls }

// Supports implements graphql.Transport.
func (get) Supports(r *http.Request) bool { return r.Method == http.MethodGet }

// Do implements graphql.Transport.
func (c calls) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	media := negotiate(r.Header.Values("Accept")).media
	if media == "" {
		refuse(w, r, http.StatusNotAcceptable, fault.New(fault.BadUserInput, "answers are %s or %s", mediaGraphQL, mediaJSON))
		return
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	params, ok := c.params(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.timeout)
	defer cancel()
	operation, errs := exec.CreateOperationContext(ctx, params)
	switch {
	case errs != nil:
		write(w, media, exec.DispatchError(graphql.WithOperationContext(ctx, operation), errs))
	case operation.Operation.Operation == ast.Subscription:
		refuse(w, r, http.StatusBadRequest, fault.New(fault.BadUserInput,
			"subscriptions need a websocket (graphql-transport-ws), or the header Accept: %s", mediaEvents))
	case !mayExecute(w, r, operation):
	default:
		write(w, media, execute(ctx, exec, operation))
	}
}

// params reads the operation that a request asks for. A request that cannot be read it has refused.
func (c calls) params(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, bool) {
	start := graphql.Now()
	read := c.fromBody
	if r.Method == http.MethodGet {
		read = c.fromURL
	}
	params, err := read(w, r)
	if err != nil {
		status, reason := unreadable(err)
		refuse(w, r, status, reason)
		return nil, false
	}
	if params.Query == "" && params.Extensions["persistedQuery"] == nil {
		refuse(w, r, http.StatusBadRequest, fault.BadInput("query", "is missing"))
		return nil, false
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: start, End: graphql.Now()}
	return params, true
}

func (c calls) fromBody(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, error) {
	var params graphql.RawParams
	err := decode(http.MaxBytesReader(w, r.Body, c.maxBytes), &params)
	return &params, err
}

func (c calls) fromURL(_ http.ResponseWriter, r *http.Request) (*graphql.RawParams, error) {
	if int64(len(r.URL.RawQuery)) > c.maxBytes {
		return nil, &http.MaxBytesError{Limit: c.maxBytes}
	}
	in, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	params := &graphql.RawParams{Query: in.Get("query"), OperationName: in.Get("operationName")}
	return params, errors.Join(
		decode(strings.NewReader(cmp.Or(in.Get("variables"), "null")), &params.Variables),
		decode(strings.NewReader(cmp.Or(in.Get("extensions"), "null")), &params.Extensions),
	)
}

// mayExecute refuses what must not come by GET: a page or a cache may send one at any time.
func mayExecute(w http.ResponseWriter, r *http.Request, operation *graphql.OperationContext) bool {
	if r.Method != http.MethodGet || operation.Operation.Operation != ast.Mutation {
		return true
	}
	w.Header().Set("Allow", http.MethodPost)
	refuse(w, r, http.StatusMethodNotAllowed, fault.New(fault.BadUserInput, "mutations need a POST"))
	return false
}

// execute returns the answer of a query or mutation.
func execute(ctx context.Context, exec graphql.GraphExecutor, operation *graphql.OperationContext) *graphql.Response {
	respond, ctx := exec.DispatchOperation(ctx, operation)
	response := respond(ctx)
	if response == nil { // the time is up or the caller gone, and nothing was executed
		response = &graphql.Response{Errors: gqlerror.List{present(ctx, errors.Join(errNoAnswer, ctx.Err()))}}
	}
	return response
}

// unsupported answers what no other transport does.
type unsupported struct{}

// Supports implements graphql.Transport.
func (unsupported) Supports(*http.Request) bool { return true }

// Do implements graphql.Transport.
func (unsupported) Do(w http.ResponseWriter, r *http.Request, _ graphql.GraphExecutor) {
	switch r.Method {
	case http.MethodPost:
		refuse(w, r, http.StatusUnsupportedMediaType, fault.New(fault.BadUserInput, "the Content-Type must be %s", mediaJSON))
	case http.MethodOptions:
		w.Header().Set("Allow", callMethods)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", callMethods)
		refuse(w, r, http.StatusMethodNotAllowed, fault.New(fault.BadUserInput, "send a POST, or a GET for a query"))
	}
}

// decode reads one JSON value, and refuses anything after it.
func decode(from io.Reader, into any) error {
	decoder := json.NewDecoder(from)
	decoder.UseNumber() // positions have 53 bits, and ids 63
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, errors.New("more than one value"))
	}
	return nil
}

// unreadable says what is wrong with a request, in words that hold nothing of it.
func unreadable(err error) (status int, reason *fault.Error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge, fault.New(fault.QueryTooLarge, "the request has more than %d bytes", tooLarge.Limit)
	}
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) && mistyped.Field == "" && mistyped.Value == "array" {
		return http.StatusBadRequest, fault.New(fault.BadUserInput, "send operations one by one, not as a list")
	}
	return http.StatusBadRequest, fault.New(fault.BadUserInput,
		"the request must be JSON: an object with a string query, and if need be an object variables and a string operationName")
}

// taste is what a caller likes to be answered with.
type taste struct {
	media  string  // the best liked of those that one answer may have, and empty if none is
	liking float64 // how much, from 0 to 1
	events float64 // how much a stream of events is liked
}

func negotiate(accept []string) taste {
	var t taste
	for part := range strings.SplitSeq(cmp.Or(strings.Join(accept, ","), mediaJSON), ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, given := parameters["q"]; given {
			quality, _ = strconv.ParseFloat(q, 64)
		}
		if media == "*/*" || media == "application/*" {
			media = mediaJSON
		}
		switch {
		case media == mediaEvents:
			t.events = max(t.events, quality)
		case (media == mediaJSON || media == mediaGraphQL) && quality > t.liking:
			t.media, t.liking = media, quality
		}
	}
	return t
}

// write answers with a response.
func write(w http.ResponseWriter, media string, response *graphql.Response) {
	status := http.StatusOK
	if media == mediaGraphQL && response.Data == nil {
		status = statusOf(response.Errors)
	}
	body, err := encode(response)
	if err != nil {
		panic(err) // what extensions put into the response is not JSON
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	send(w, status, body)
}

// refuse answers a request that is not even an operation.
func refuse(w http.ResponseWriter, r *http.Request, status int, reason *fault.Error) {
	body, err := encode(&graphql.Response{Errors: gqlerror.List{present(r.Context(), reason)}})
	if err != nil {
		panic(err)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", mediaJSON+"; charset=utf-8")
	}
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // it is JSON, and said to be; the caller may be gone
}

// encode writes a response as JSON. Its data is JSON already, and goes out as it is. Where nothing was executed
// there is none, not even a null.
func encode(response *graphql.Response) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(len(response.Data) + len(`{"data":}`))
	separator := byte('{')
	member := func(name string, value []byte) {
		body.WriteByte(separator)
		separator = ','
		body.WriteString(`"` + name + `":`)
		body.Write(value)
	}
	if len(response.Errors) > 0 {
		errs, err := json.Marshal(response.Errors)
		if err != nil {
			return nil, err
		}
		member("errors", errs)
	}
	if response.Data != nil {
		member("data", response.Data)
	}
	if len(response.Extensions) > 0 {
		extensions, err := json.Marshal(response.Extensions)
		if err != nil {
			return nil, err
		}
		member("extensions", extensions)
	}
	body.WriteByte('}')
	return body.Bytes(), nil
}

// statusOf is the status of a request that ended with errors before anything was executed.
func statusOf(errs gqlerror.List) int {
	code, _ := errs[0].Extensions["code"].(string)
	switch fault.Code(code) {
	case persistedQueryNotFound: // as Apollo answers it: the client is to send the text, and nothing went wrong
		return http.StatusOK
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.RateLimited, fault.TooManySubscriptions:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Internal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}
