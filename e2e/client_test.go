package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// client is somebody with a token who calls a server, on a device that may have a name. A call that goes wrong fails
// the test and answers with nothing, so that clients may be used in any goroutine.
type client struct {
	t      *testing.T
	http   *http.Client
	url    string
	token  string
	device string
}

// on returns the same person on a device.
func (c client) on(device string) client {
	c.device = device
	return c
}

// vars are the variables of an operation.
type vars map[string]any

// reply is what came back of a call.
type reply struct {
	status int
	header http.Header
	body   string
	Data   json.RawMessage
	Errors []problem
}

// problem is what a client is told of an error.
type problem struct {
	Message    string
	Extensions struct {
		Code         string
		RetryAfterMs int64
	}
}

// problem is the first error, and a zero one where there is none.
func (r reply) problem() problem {
	if len(r.Errors) == 0 {
		return problem{}
	}
	return r.Errors[0]
}

func (r reply) code() string { return r.problem().Extensions.Code }

func (r reply) message() string { return r.problem().Message }

// try sends an operation and returns whatever comes back. An error means that nothing did.
func (c client) try(query string, variables vars) (reply, error) {
	body, err := json.Marshal(vars{"query": query, "variables": variables})
	if err != nil {
		return reply{}, err
	}
	if strings.HasPrefix(query, "subscription") {
		return c.first(body)
	}
	return c.call(http.MethodPost, "/graphql", bytes.NewReader(body))
}

// post sends a query in the way that everything but subscriptions goes.
func (c client) post(query string) reply {
	c.t.Helper()
	body, err := json.Marshal(vars{"query": query})
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := c.call(http.MethodPost, "/graphql", bytes.NewReader(body))
	if err != nil {
		c.t.Error(err)
	}
	return r
}

// first opens a stream of events, returns the first, and closes it.
func (c client) first(body []byte) (r reply, err error) {
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r = reply{status: response.StatusCode, header: response.Header}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			r.body = data
			return r, json.Unmarshal([]byte(data), &r)
		}
	}
	return r, io.ErrUnexpectedEOF
}

// call makes a request. What is not JSON has neither data nor errors.
func (c client) call(method, path string, body io.Reader) (reply, error) {
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, body)
	if err != nil {
		return reply{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: response.StatusCode, header: response.Header, body: string(text)}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// do sends an operation that must be answered, be it with errors.
func (c client) do(query string, variables vars) reply {
	c.t.Helper()
	r, err := c.try(query, variables)
	if err != nil {
		c.t.Errorf("%s: %v", query, err)
	}
	return r
}

// get reads a path.
func (c client) get(path string) reply {
	c.t.Helper()
	r, err := c.call(http.MethodGet, path, nil)
	if err != nil {
		c.t.Errorf("GET %s: %v", path, err)
	}
	return r
}

// ask sends an operation that must succeed.
func ask[T any](c client, query string, variables vars) T {
	c.t.Helper()
	return data[T](c, c.do(query, variables))
}

// data reads a reply that must have no errors.
func data[T any](c client, r reply) (data T) {
	c.t.Helper()
	if len(r.Errors) > 0 {
		c.t.Errorf("got %.500s", r.body)
	} else {
		decode(c.t, string(r.Data), &data)
	}
	return data
}

// decode reads JSON.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Errorf("%v in %.500s", err, text)
	}
}

// refused sends an operation that must be refused, and returns the message.
func (c client) refused(code, query string, variables vars) string {
	c.t.Helper()
	r := c.do(query, variables)
	if r.code() != code {
		c.t.Errorf("%s %.200v: got %.500s, want %s", query, variables, r.body, code)
	}
	return r.message()
}

// expect reports a value that is not what it must be.
func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// stream opens a stream of events, and returns what reads it to its end.
func (c client) stream(query string) (rest func() string) {
	c.t.Helper()
	body, err := json.Marshal(vars{"query": query})
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request) //nolint:bodyclose // whoever reads it closes it
	if err != nil {
		c.t.Fatal(err)
	}
	return func() string {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body) // however it ends
		return string(text)
	}
}
