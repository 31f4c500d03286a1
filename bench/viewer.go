package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

const (
	// liveQuery asks for what an app keeps of its list of channels.
	liveQuery = `subscription { badgeChanged {
		snapshot
		badges { id version channel { id } unread { label } mentions { label } muted }
		removedChannelIds
		total { unread { label } unreadChannels }
		storeEpoch
	} }`

	// maxMessage is larger than any message of a server here.
	maxMessage = 1024
)

// errNotTold says that a server does not tell a viewer what it should.
var errNotTold = errors.New("a viewer is not told what they should be")

// viewer is somebody who has their badges open, on a websocket of their own. It does less than apps do, to leave the
// machine to the servers.
type viewer struct {
	number  int // in their crowd
	conn    *websocket.Conn
	buffer  []byte
	told    []byte // the latest event, in the buffer
	badge   []byte // what the badge that is looked at begins with, up to its version
	version id.Seq // of that badge, as it was told last
}

// dialer opens the websockets of viewers.
func dialer() *websocket.Dialer {
	return &websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, ReadBufferSize: 512, WriteBufferSize: 512}
}

// watch signs a person in, opens their badges, and returns when they see them.
func (s *server) watch(ctx context.Context, dialer *websocket.Dialer, user id.User, channel id.Channel) (*viewer, error) {
	token, err := sign(person.Viewer{ID: user, Role: person.RoleUser})
	if err != nil {
		return nil, err
	}
	conn, response, err := dialer.DialContext(ctx, "ws://"+s.address+"/graphql", nil)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	v := &viewer{
		conn: conn, buffer: make([]byte, maxMessage),
		badge: fmt.Appendf(nil, `{"id":"%d:%d","version":`, user, channel),
	}
	if err := v.begin(token); err != nil {
		v.leave()
		return nil, fmt.Errorf("%w (user %d)", err, user)
	}
	return v, nil
}

func (v *viewer) begin(token string) error {
	v.hurry()
	if err := v.say(`{"type":"connection_init","payload":{"Authorization":"Bearer ` + token + `"}}`); err != nil {
		return err
	}
	if err := v.say(`{"id":"1","type":"subscribe","payload":` + body(liveQuery) + `}`); err != nil {
		return err
	}
	if err := v.next(); err != nil {
		return err
	}
	if !bytes.Contains(v.told, []byte(`"snapshot":true`)) {
		return fmt.Errorf("%w: the first is %.300q", errNotTold, v.told)
	}
	version, err := v.tells()
	v.version = version
	return errors.Join(err, v.conn.SetReadDeadline(time.Time{}))
}

// hurry bounds the wait for the events that follow.
func (v *viewer) hurry() { _ = v.conn.SetReadDeadline(time.Now().Add(patience)) }

func (v *viewer) say(message string) error {
	return v.conn.WriteMessage(websocket.TextMessage, []byte(message))
}

// next waits for the next event.
func (v *viewer) next() error {
	for {
		_, reader, err := v.conn.NextReader()
		if err != nil {
			return err
		}
		n, err := io.ReadFull(reader, v.buffer)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.Join(fmt.Errorf("%w: a message has %d bytes", errNotTold, n), err)
		}
		switch v.told = v.buffer[:n]; {
		case v.isKind("next"):
			return nil
		case v.isKind("ping"):
			if err := v.say(`{"type":"pong"}`); err != nil {
				return err
			}
		case v.isKind("connection_ack"), v.isKind("pong"):
		default:
			return fmt.Errorf("%w: %.300q", errNotTold, v.told)
		}
	}
}

func (v *viewer) isKind(kind string) bool { return bytes.Contains(v.told, []byte(`"type":"`+kind+`"`)) }

// tells returns the version that the latest event tells of the badge that is looked at.
func (v *viewer) tells() (id.Seq, error) {
	_, after, found := bytes.Cut(v.told, v.badge)
	digits, _, more := bytes.Cut(after, []byte{','})
	if version, err := strconv.ParseInt(string(digits), 10, 64); found && more && err == nil {
		return id.Seq(version), nil
	}
	return 0, fmt.Errorf("%w: %.300q", errNotTold, v.told)
}

// follow reads event by event until the connection ends, and calls heard for each change of the badge. On a busy machine
// changes may melt into one event; none may be told twice.
func (v *viewer) follow(heard func(*viewer)) error {
	for {
		if err := v.next(); err != nil {
			return err
		}
		version, err := v.tells()
		if err != nil {
			return err
		}
		if version <= v.version {
			return fmt.Errorf("%w: version %d follows %d", errNotTold, version, v.version)
		}
		for ; v.version < version; v.version++ {
			heard(v)
		}
	}
}

// leave hangs up and leaves nothing behind for the kernel to wait for.
func (v *viewer) leave() {
	if tcp, ok := v.conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = v.conn.Close()
}
