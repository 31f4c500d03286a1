package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxPooledBytes keeps the pool from holding what one large answer needed.
const maxPooledBytes = 64 << 10

// frames are the messages of one operation that go out together.
type frames struct {
	buffer bytes.Buffer
	first  int // where the second begins; zero: there is one
}

func (t *Transport) getFrames() *frames {
	if f, ok := t.frames.Get().(*frames); ok {
		return f
	}
	return new(frames)
}

func (t *Transport) putFrames(f *frames) {
	if f.buffer.Cap() <= maxPooledBytes {
		f.buffer.Reset()
		f.first = 0
		t.frames.Put(f)
	}
}

// next appends a response. Its data is JSON already, and goes out as it is.
func (f *frames) next(id []byte, response *graphql.Response) {
	f.head(id, "next")
	f.buffer.WriteString(`,"payload":`)
	separator := byte('{')
	member := func(name string) {
		f.buffer.WriteByte(separator)
		separator = ','
		f.buffer.WriteString(name)
	}
	if len(response.Errors) > 0 {
		member(`"errors":`)
		f.value(response.Errors)
	}
	if response.Data != nil {
		member(`"data":`)
		f.buffer.Write(response.Data)
	}
	if len(response.Extensions) > 0 {
		member(`"extensions":`)
		f.value(response.Extensions)
	}
	if separator == '{' {
		f.buffer.WriteByte('{')
	}
	f.buffer.WriteString(`}}`)
}

// complete appends the message that nothing will follow.
func (f *frames) complete(id []byte) {
	f.first = f.buffer.Len()
	f.head(id, "complete")
	f.buffer.WriteByte('}')
}

// failure appends errors, which are the last that is said of an operation.
func (f *frames) failure(id []byte, errs gqlerror.List) {
	f.head(id, "error")
	f.buffer.WriteString(`,"payload":`)
	f.value(errs)
	f.buffer.WriteByte('}')
}

func (f *frames) head(id []byte, kind string) {
	f.buffer.WriteString(`{"id":`)
	f.buffer.Write(id)
	f.buffer.WriteString(`,"type":"`)
	f.buffer.WriteString(kind)
	f.buffer.WriteByte('"')
}

func (f *frames) value(v any) {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err) // what extensions put into the response is not JSON
	}
	f.buffer.Write(encoded)
}

func (f *frames) each(write func(message []byte) error) error {
	all := f.buffer.Bytes()
	if f.first == 0 {
		return write(all)
	}
	if err := write(all[:f.first]); err != nil {
		return err
	}
	return write(all[f.first:])
}

func appendPong(b []byte, payload json.RawMessage) []byte {
	b = append(b, `{"type":"pong"`...)
	if len(payload) > 0 {
		b = append(append(b, `,"payload":`...), payload...)
	}
	return append(b, '}')
}

// send writes a message that belongs to no operation.
func (c *conn) send(message []byte) {
	c.writing.Lock()
	err := c.write(message)
	c.writing.Unlock()
	c.wrote(err)
}

// sendNext writes a response of an operation, unless the operation has ended. It reports whether it did.
func (c *conn) sendNext(o *operation, response *graphql.Response) bool {
	f := c.t.getFrames()
	defer c.t.putFrames(f)
	f.next(o.quoted, response)
	c.writing.Lock()
	runs := c.runs(o)
	var err error
	if runs {
		err = f.each(c.write)
	}
	c.writing.Unlock()
	c.wrote(err)
	return runs && err == nil
}

// sendLast ends an operation, and writes the last that is said of it unless it has ended before. The id is free
// before a client can know that it is.
func (c *conn) sendLast(o *operation, f *frames) {
	defer c.t.putFrames(f)
	c.writing.Lock()
	var err error
	if c.remove(o) {
		err = f.each(c.write)
	}
	c.writing.Unlock()
	o.release()
	c.wrote(err)
}

// write is called with writing held.
func (c *conn) write(message []byte) error {
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.t.config.WriteTimeout))
	return c.ws.WriteMessage(websocket.TextMessage, message)
}

// wrote ends the connection if its client cannot be written to.
func (c *conn) wrote(err error) {
	if err == nil || errors.Is(err, websocket.ErrCloseSent) {
		return
	}
	var network net.Error
	if first := c.stop(); first && errors.As(err, &network) && network.Timeout() {
		c.t.slow.Add(1)
	}
	c.discard()
}

// pong answers a ping of the websocket's own, of which clients need none.
func (c *conn) pong(data string) error {
	err := c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.t.config.WriteTimeout))
	if errors.Is(err, websocket.ErrCloseSent) {
		return nil
	}
	return err
}
