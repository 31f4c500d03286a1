package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"

	"tidemark/internal/auth"
	"tidemark/internal/fault"
	"tidemark/internal/person"
)

// maxIDBytes bounds the id of an operation, which is kept as long as the operation is. Clients number or use UUIDs.
const maxIDBytes = 256

// message is what a client sends.
type message struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

// parse reads a message, and says what is wrong with one that is none.
func parse(kind int, raw []byte) (m message, wrong string) {
	switch {
	case kind != websocket.TextMessage || !utf8.Valid(raw) || !isObject(raw) || json.Unmarshal(raw, &m) != nil:
		return m, "a message is a JSON object with a string type, and if need be a string id and an object payload"
	case len(m.Payload) > 0 && !isObject(m.Payload) && string(m.Payload) != "null":
		return m, "payload must be an object"
	}
	return m, ""
}

// isObject tells an object from other JSON.
func isObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte{'{'}) }

// receive acts on a message. What takes longer than to understand it is left for the caller to execute, if anything
// is returned for that. The returned context is for the messages that follow.
func (c *conn) receive(ctx context.Context, kind int, raw []byte) (next context.Context, execute func()) {
	c.hear()
	m, wrong := parse(kind, raw)
	if wrong != "" {
		c.end(codeBadMessage, wrong)
		return ctx, nil
	}
	switch m.Type {
	case "connection_init":
		return c.init(ctx, m), nil
	case "ping":
		c.send(appendPong(nil, m.Payload))
	case "pong": // was heard
	case "subscribe":
		return ctx, c.subscribe(ctx, m)
	case "complete":
		if !c.open || m.ID == "" {
			c.end(codeBadMessage, "complete needs the id of an operation")
			break
		}
		c.completed(m.ID)
	default:
		c.end(codeBadMessage, "a type is one of connection_init, ping, pong, subscribe and complete")
	}
	return ctx, nil
}

// init lets the client in, if it brings a good token.
func (c *conn) init(ctx context.Context, m message) context.Context {
	if c.introduced {
		c.end(codeSecondInit, "Too many initialisation requests")
		return ctx
	}
	c.introduced = true
	c.hold()
	viewer, expiry, err := c.authenticate(ctx, m.Payload)
	if err != nil {
		c.t.refused.Add(1)
		c.turnAway(err)
		return ctx
	}
	if refusal := c.t.registry.admit(viewer.ID); refusal != nil {
		c.t.refused.Add(1)
		c.end(codeTryLater, refusal.Message)
		return ctx
	}
	c.viewer, c.open = viewer.ID, true
	c.attend()
	c.send([]byte(`{"type":"connection_ack"}`))
	c.beat(expiry)
	return person.NewContext(ctx, viewer)
}

// turnAway ends the connection of a client that is not known. While the issuer's keys cannot be had nobody is, and
// clients must not sign their users out over that.
func (c *conn) turnAway(err error) {
	if fault.CodeOf(err) == fault.Unauthenticated {
		c.end(codeForbidden, fault.MessageOf(err))
		return
	}
	c.end(codeTryLater, fault.MessageOf(err))
}

// authenticate returns whom the payload of connection_init has a token of, and until when.
func (c *conn) authenticate(ctx context.Context, payload json.RawMessage) (person.Viewer, time.Time, error) {
	var in struct{ Authorization string } // JSON's names are matched in any case
	if len(payload) == 0 || json.Unmarshal(payload, &in) != nil {
		in.Authorization = ""
	}
	if _, ok := auth.Bearer(in.Authorization); !ok {
		return person.Viewer{}, time.Time{}, fault.New(fault.Unauthenticated, `sign in: send connection_init with {"Authorization": "Bearer TOKEN"}`)
	}
	alone, cancel := context.WithTimeout(context.Background(), c.t.config.CallTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return c.t.identify(alone, in.Authorization) //nolint:contextcheck // whom a header of the upgrade names must not stand in for a refused token
}

func (t *Transport) identify(ctx context.Context, header string) (person.Viewer, time.Time, error) {
	ctx = t.config.Authenticate(ctx, header)
	viewer, err := auth.ViewerFrom(ctx)
	expiry, _ := auth.Expiry(ctx)
	return viewer, expiry, err
}

// params reads the payload of subscribe.
func params(payload json.RawMessage) (*graphql.RawParams, error) {
	start := graphql.Now()
	var in struct {
		Query         *string
		OperationName string
		Variables     map[string]any
		Extensions    map[string]any
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber() // positions have 53 bits, and ids 63
	err := decoder.Decode(&in)
	switch {
	case errors.Is(err, io.EOF), err == nil && in.Query == nil && in.Extensions["persistedQuery"] == nil:
		return nil, errors.New("subscribe needs a payload with a query")
	case err != nil:
		return nil, errors.New("the payload of subscribe has a string query, and if need be an object variables and a string operationName")
	}
	read := &graphql.RawParams{
		OperationName: in.OperationName, Variables: in.Variables, Extensions: in.Extensions,
		ReadTime: graphql.TraceTiming{Start: start, End: graphql.Now()},
	}
	if in.Query != nil {
		read.Query = *in.Query
	}
	return read, nil
}
