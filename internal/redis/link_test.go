package redis

import (
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// TestLinkConnectsOnce holds go-redis to leave a broken connection broken.
func TestLinkConnectsOnce(t *testing.T) {
	server := miniredis.RunT(t)
	client := newClient(&goredis.Options{Addr: server.Addr()})
	defer client.Close()
	l := newLink(t.Context(), client.rdb.Options())
	defer l.close()
	if err := l.pubsub.Subscribe(t.Context(), "channel:{1}"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pubsub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = l.conn.Close()
	if reply, err := l.pubsub.Receive(t.Context()); err == nil {
		t.Errorf("received %v on a connection that is closed", reply)
	}
	if err := l.pubsub.Subscribe(t.Context(), "channel:{2}"); !errors.Is(err, errLinkSpent) {
		t.Errorf("Subscribe: got %v, want %v", err, errLinkSpent)
	}
	if _, err := l.pubsub.Receive(t.Context()); !errors.Is(err, errLinkSpent) {
		t.Errorf("Receive: got %v, want %v", err, errLinkSpent)
	}
}
