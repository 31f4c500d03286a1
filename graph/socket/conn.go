package socket

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"

	"tidemark/internal/id"
)

const (
	// The codes that connections end with. The protocol's own are those above 4000.
	codeRestart     = websocket.CloseServiceRestart
	codeTryLater    = websocket.CloseTryAgainLater
	codeBadMessage  = 4400
	codeNotSignedIn = 4401
	codeForbidden   = 4403
	codeNoProtocol  = 4406
	codeSilent      = 4408
	codeDuplicate   = 4409
	codeSecondInit  = 4429

	// sendBuffer bounds what the kernel holds for a client that does not read.
	sendBuffer = 64 << 10
	// closeTimeout bounds the farewell: the writing of a close frame, and the wait for the client's.
	closeTimeout = time.Second
	// maxReasonBytes is what a close frame has room for.
	maxReasonBytes = 123
)

// conn is one websocket.
type conn struct {
	t      *Transport
	exec   graphql.GraphExecutor
	ws     *websocket.Conn
	cancel context.CancelFunc // ends the context of all that the connection began
	work   sync.WaitGroup     // every goroutine but the reader

	// Of the messages, which are received one after the other.
	introduced bool    // connection_init has come
	open       bool    // and was good
	viewer     id.User // whose connection it is, if it is open

	writing sync.Mutex // held while messages are written, and taken before mu

	mu         sync.Mutex            // never held while anything is waited for, nor while a stream is called
	over       bool                  // nothing is begun any more
	attended   bool                  // Presence has heard of the connection, and hears of its end
	draining   bool                  // no operation is begun any more
	operations map[string]*operation // by the id that the client chose
	calls      int                   // goroutines that execute an operation or open a stream
	live       int                   // open streams
	rested     chan struct{}         // closed when there are no calls; made by Drain
	pulse
}

// serve makes a connection of what was upgraded.
func (t *Transport) serve(ctx context.Context, ws *websocket.Conn, exec graphql.GraphExecutor) {
	if tcp := tcpOf(ws); tcp != nil {
		_ = tcp.SetWriteBuffer(sendBuffer) // a wish
	}
	ws.SetReadLimit(int64(t.config.MaxBytes))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{t: t, exec: exec, ws: ws, cancel: cancel}
	ws.SetPingHandler(c.pong)
	c.awaitInit()
	if !t.registry.enter(c) {
		t.refused.Add(1)
		c.end(codeRestart, "service restart")
		_ = ws.Close()
		return
	}
	t.sockets.Add(1)
	go c.read(ctx)
}

// read is the connection's one goroutine.
func (c *conn) read(ctx context.Context) {
	defer c.left()
	if c.ws.Subprotocol() != protocol {
		c.end(codeNoProtocol, "Subprotocol not acceptable")
	}
	for {
		kind, raw, err := c.ws.ReadMessage()
		if err != nil {
			c.hungUp(err)
			return
		}
		ctx = c.handle(ctx, kind, raw)
	}
}

// handle has a message seen to on a goroutine of its own, because JSON and GraphQL need more stack than is worth
// keeping for each connection. It returns as soon as the message is understood, with the context of those that follow.
func (c *conn) handle(ctx context.Context, kind int, raw []byte) context.Context {
	understood := make(chan context.Context, 1)
	if !c.spawn(ctx, func() {
		defer close(understood)
		next, execute := c.receive(ctx, kind, raw)
		understood <- next
		if execute != nil {
			execute()
		}
	}) {
		return ctx // too late: the connection ends
	}
	if next, ok := <-understood; ok {
		return next
	}
	return ctx // it panicked, and the connection ends
}

// spawn runs f on a goroutine that the end of the connection waits for, unless it has come.
func (c *conn) spawn(ctx context.Context, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		defer c.recovered(ctx)
		f()
	}()
	return true
}

func (c *conn) recovered(ctx context.Context) {
	if panicked := recover(); panicked != nil {
		c.t.config.Logger.LogAttrs(ctx, slog.LevelError, "panic", slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
		c.end(codeTryLater, "internal error")
	}
}

// attend tells that the viewer is connected, unless that is over by now.
func (c *conn) attend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.attended = true
		c.t.config.Presence.Connected(c.viewer)
	}
}

// Drain implements Stream.
func (c *conn) Drain(ctx context.Context) {
	if rested := c.rest(); rested != nil {
		select {
		case <-rested:
		case <-ctx.Done():
		}
	}
	c.end(codeRestart, "service restart")
}

// rest begins no operation any more. What it returns is closed when those that are executed are answered, and nil if
// they are.
func (c *conn) rest() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.rested == nil && c.calls > 0 {
		c.rested = make(chan struct{})
	}
	return c.rested
}

// end tells the client why, and ends the connection. The reader stays for as long as the client needs to hear it. It
// reports whether this is what ended the connection.
func (c *conn) end(code int, reason string) bool {
	if !c.stop() {
		return false
	}
	deadline := time.Now().Add(closeTimeout)
	if err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, clip(reason)), deadline); err != nil {
		c.discard() // a write is stuck, or the client gone
		return true
	}
	_ = c.ws.SetReadDeadline(deadline)
	return true
}

// Abort implements Stream. What was written and not yet received is lost.
func (c *conn) Abort() {
	c.stop()
	c.discard()
}

// discard closes the connection without a wait for what the client has not received.
func (c *conn) discard() {
	tcp := tcpOf(c.ws)
	if tcp == nil {
		_ = c.ws.Close()
		return
	}
	_ = tcp.SetLinger(0) // or the kernel would keep it for a client that does not read
	_ = tcp.Close()      // without TLS's own farewell, which may take seconds
}

// stop ends all operations and begins nothing any more. It reports whether it was the first to.
func (c *conn) stop() bool {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return false
	}
	c.over = true
	if c.attended {
		c.t.config.Presence.Disconnected(c.viewer)
	}
	operations := c.operations
	c.operations = nil
	for _, o := range operations {
		o.leaveAloneLocked()
	}
	c.t.subscriptions.Add(int64(-c.live))
	c.live = 0
	c.clock.Stop()
	c.mu.Unlock()
	c.cancel()
	for _, o := range operations {
		o.release()
	}
	return true
}

// hungUp ends a connection that cannot be read any more. If the client is at fault it has been told, and goes on to
// hear it: a connection that is closed while there is more to read is reset, and what was said may be lost with that.
func (c *conn) hungUp(err error) {
	c.stop()
	var closed *websocket.CloseError
	var network net.Error
	if !errors.As(err, &closed) && !errors.As(err, &network) && !errors.Is(err, io.EOF) {
		peer := c.ws.NetConn()
		_ = peer.SetReadDeadline(time.Now().Add(closeTimeout))
		_, _ = io.Copy(io.Discard, peer)
	}
	_ = c.ws.Close()
}

// left is the very end.
func (c *conn) left() {
	c.work.Wait()
	if c.open {
		c.t.registry.dismiss(c.viewer)
	}
	c.t.sockets.Add(-1)
	c.t.registry.leave(c)
}

// tcpOf returns what is below a websocket, TLS or not, and nil where that is not TCP.
func tcpOf(ws *websocket.Conn) *net.TCPConn {
	at := ws.NetConn()
	if wrapped, ok := at.(interface{ NetConn() net.Conn }); ok {
		at = wrapped.NetConn()
	}
	tcp, _ := at.(*net.TCPConn)
	return tcp
}

// clip cuts a reason to what fits into a close frame.
func clip(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) > maxReasonBytes {
		reason = strings.ToValidUTF8(reason[:maxReasonBytes], "")
	}
	return reason
}
