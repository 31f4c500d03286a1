package graph_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/graph"
	"tidemark/internal/person"
)

// dial opens a websocket, or returns the status of the refusal.
func dial(t *testing.T, server *httptest.Server, origin string) (*websocket.Conn, int) {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	ws, response, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/graphql", header)
	if response == nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if err != nil {
		return nil, response.StatusCode
	}
	t.Cleanup(func() { _ = ws.Close() })
	if err := ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return ws, response.StatusCode
}

// exchange sends messages, and fails unless those that are wanted come back.
func exchange(t *testing.T, ws *websocket.Conn, send, want []string) {
	t.Helper()
	for _, m := range send {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range want {
		_, got, err := ws.ReadMessage()
		if err != nil || string(got) != m {
			t.Fatalf("got %s and %v\nwant %s", got, err, m)
		}
	}
}

func signedInAsAnn(cfg *graph.Config) {
	cfg.Authenticate = func(ctx context.Context, _ string) context.Context { return person.NewContext(ctx, ann) }
}

func TestTheAPIOverAWebsocket(t *testing.T) {
	t.Parallel()
	api := serveAPI(signedInAsAnn, func(cfg *graph.Config) { cfg.Origins = []string{"https://chat.example.com"} })
	server := httptest.NewServer(api)
	defer server.Close()
	for origin, status := range map[string]int{
		"": 101, server.URL: 101, "https://chat.example.com": 101, "https://evil.example": 403, "null": 403, "http://127.0.0.1:1": 403,
	} {
		if _, got := dial(t, server, origin); got != status {
			t.Errorf("from %q: %d, want %d", origin, got, status)
		}
	}
	ws, _ := dial(t, server, "")
	exchange(t, ws, []string{
		`{"type":"connection_init","payload":{"Authorization":"Bearer x"}}`,
		`{"type":"subscribe","id":"1","payload":{"query":"{me{id displayName}}"}}`,
	}, []string{
		`{"type":"connection_ack"}`,
		`{"id":"1","type":"next","payload":{"data":{"me":{"id":"7","displayName":"Ann"}}}}`, `{"id":"1","type":"complete"}`,
	})
	exchange(t, ws, []string{`{"type":"subscribe","id":"2","payload":{"query":"{channel(id:\"x\"){id}}"}}`}, []string{
		`{"id":"2","type":"next","payload":{"errors":[{"message":"id must be the decimal form of a whole number from 1 to 9223372036854775807","path":["channel"],"locations":[{"line":1,"column":2}],"extensions":{"argument":"id","code":"BAD_USER_INPUT"}}],"data":{"channel":null}}}`,
		`{"id":"2","type":"complete"}`,
	})
	api.Drain(t.Context(), time.Minute)
	_, got, err := ws.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != websocket.CloseServiceRestart {
		t.Errorf("%s %v", got, err)
	}
	if _, status := dial(t, server, ""); status != http.StatusServiceUnavailable {
		t.Errorf("after the drain: %d", status)
	}
	if s := api.SocketStats(); s.Sockets != 0 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNobodyIsLetInWithoutAuthenticate(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(serve())
	defer server.Close()
	ws, _ := dial(t, server, "")
	exchange(t, ws, []string{`{"type":"connection_init","payload":{"Authorization":"Bearer x"}}`}, nil)
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, 4403) {
		t.Error(err)
	}
}
