package socket_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"tidemark/graph/socket"
	"tidemark/internal/fault"
)

// What a client does wrong ends its connection, with a code that says what it was.
func TestMistakesEndTheConnection(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.InitTimeout = time.Second })
	for name, test := range map[string]struct {
		send []string
		want []string
		code int
	}{
		"subscribe before init":  {[]string{values}, nil, 4401},
		"two inits":              {[]string{initAsAnn, initAsAnn}, []string{ack}, 4429},
		"no init":                {nil, nil, 4408},
		"no JSON":                {[]string{initAsAnn, `}}not json`}, []string{ack}, 4400},
		"no JSON at first":       {[]string{`}}not json`}, nil, 4400},
		"nothing":                {[]string{``}, nil, 4400},
		"null":                   {[]string{`null`}, nil, 4400},
		"two messages":           {[]string{initAsAnn + initAsAnn}, nil, 4400},
		"no UTF-8":               {[]string{"{\"type\":\"ping\",\"payload\":{\"a\":\"\xff\"}}"}, nil, 4400},
		"unknown type":           {[]string{initAsAnn, `{"type":"zzz"}`}, []string{ack}, 4400},
		"the old protocol":       {[]string{initAsAnn, `{"type":"start","id":"1","payload":{"query":"{hello}"}}`}, []string{ack}, 4400},
		"no type":                {[]string{initAsAnn, `{"id":"1"}`}, []string{ack}, 4400},
		"a type that is none":    {[]string{initAsAnn, `{"type":7}`}, []string{ack}, 4400},
		"an array":               {[]string{initAsAnn, `[]`}, []string{ack}, 4400},
		"subscribe without id":   {[]string{initAsAnn, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, []string{ack}, 4400},
		"an empty id":            {[]string{initAsAnn, `{"id":"","type":"subscribe","payload":{"query":"{hello}"}}`}, []string{ack}, 4400},
		"an id that is a number": {[]string{initAsAnn, `{"id":1,"type":"subscribe","payload":{"query":"{hello}"}}`}, []string{ack}, 4400},
		"a long id":              {[]string{initAsAnn, subscribe(strings.Repeat("x", 257), "{hello}")}, []string{ack}, 4400},
		"no payload":             {[]string{initAsAnn, `{"id":"1","type":"subscribe"}`}, []string{ack}, 4400},
		"a null payload":         {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":null}`}, []string{ack}, 4400},
		"a payload that is none": {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":"{hello}"}`}, []string{ack}, 4400},
		"no query":               {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":{"variables":{}}}`}, []string{ack}, 4400},
		"a query that is none":   {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":{"query":7}}`}, []string{ack}, 4400},
		"variables that are not": {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":[]}}`}, []string{ack}, 4400},
		"a ping with a list":     {[]string{`{"type":"ping","payload":[]}`}, nil, 4400},
		"complete before init":   {[]string{complete("1")}, nil, 4400},
		"complete without id":    {[]string{initAsAnn, `{"type":"complete"}`}, []string{ack}, 4400},
		"one id twice":           {[]string{initAsAnn, values, values}, []string{ack}, 4409},
		"no token":               {[]string{`{"type":"connection_init"}`}, nil, 4403},
		"a null for a token":     {[]string{`{"type":"connection_init","payload":null}`}, nil, 4403},
		"another token":          {[]string{`{"type":"connection_init","payload":{"token":"bad"}}`}, nil, 4403},
		"a token that is none":   {[]string{`{"type":"connection_init","payload":{"Authorization":7}}`}, nil, 4403},
		"a token without scheme": {[]string{`{"type":"connection_init","payload":{"Authorization":"ANN"}}`}, nil, 4403},
		"a bad token":            {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer bad"}}`}, nil, 4403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := e.dial(t)
			c.send(test.send...)
			c.want(test.want...)
			if reason := c.wantClose(test.code); reason == "" || len(reason) > 123 || !utf8.ValidString(reason) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

func TestWhatIsAllowed(t *testing.T) {
	t.Parallel()
	e := open(t)
	const errorOf = `{"id":"1","type":"error","payload":[{"message":`
	for name, test := range map[string]struct{ send, want []string }{
		"ping":                  {[]string{`{"type":"ping"}`}, []string{`{"type":"pong"}`}},
		"ping with null":        {[]string{`{"type":"ping","payload":null}`}, []string{`{"type":"pong","payload":null}`}},
		"ping with a payload":   {[]string{initAsAnn, ` {"type" : "ping", "payload": {"a":1e2} } `}, []string{ack, `{"type":"pong","payload":{"a":1e2}}`}},
		"pong before init":      {[]string{`{"type":"pong"}`, initAsAnn}, []string{ack}},
		"pong unasked for":      {[]string{initAsAnn, `{"type":"pong","payload":{}}`}, []string{ack}},
		"more than is asked":    {[]string{`{"type":"connection_init","more":[],"payload":{"Authorization":"Bearer ANN","more":1}}`}, []string{ack}},
		"lower case":            {[]string{`{"type":"connection_init","payload":{"authorization":"bearer ANN"}}`}, []string{ack}},
		"upper case":            {[]string{`{"type":"connection_init","payload":{"AUTHORIZATION":"BEARER ANN"}}`}, []string{ack}},
		"no wait for the ack":   {[]string{initAsAnn, hello}, []string{ack, next("1", "{\"hello\":\"world \\u2028 <b>\"}"), complete("1")}},
		"the viewer":            {[]string{initAsAnn, subscribe("x", "{me}")}, []string{ack, next("x", `{"me":"Person 7"}`), complete("x")}},
		"an id to be escaped":   {[]string{initAsAnn, subscribe(`"\ü`, "{me}")}, []string{ack, next(`"\ü`, `{"me":"Person 7"}`), complete(`"\ü`)}},
		"numbers stay as given": {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":{"query":"query($x:Any){echo(x:$x)}","variables":{"x":9223372036854775807}}}`}, []string{ack, next("1", `{"echo":"json.Number 9223372036854775807"}`), complete("1")}},
		"which operation":       {[]string{initAsAnn, `{"id":"1","type":"subscribe","payload":{"query":"query A{me} query B{hello:me}","operationName":"B","extensions":null}}`}, []string{ack, next("1", `{"hello":"Person 7"}`), complete("1")}},
		"no such operation":     {[]string{initAsAnn, complete("never"), `{"type":"ping"}`}, []string{ack, `{"type":"pong"}`}},
		"a field that is none":  {[]string{initAsAnn, subscribe("1", "{nope}")}, []string{ack, errorOf + `"Cannot query field \"nope\" on type \"Query\".","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`}},
		"no answer":             {[]string{initAsAnn, subscribe("1", "{nothing}")}, []string{ack, errorOf + `"internal error","extensions":{"code":"INTERNAL"}}]}`}},
		"an answer but no data": {[]string{initAsAnn, subscribe("1", "{refused}")}, []string{ack, errorOf + `"refused","extensions":{"code":"FORBIDDEN"}}]}`}},
		"a refused stream":      {[]string{initAsAnn, subscribe("1", "subscription{refusedStream}")}, []string{ack, errorOf + `"refused","extensions":{"code":"FORBIDDEN"}}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := e.dial(t)
			c.send(test.send...)
			for _, want := range test.want {
				if got := c.next(); got != strings.ReplaceAll(want, `\u2028`, "\u2028") && got != want {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
			}
			c.quiet()
		})
	}
}

func TestOtherMessagesThanText(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	if err := c.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	c.wantClose(4400)

	c = e.enter(t)
	ponged := make(chan string, 1)
	c.ws.SetPongHandler(func(data string) error { ponged <- data; return nil })
	if err := c.ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c.quiet()
	if got := receive(t, ponged, "the ping is answered"); got != "x" {
		t.Errorf("the pong holds %q", got)
	}
	// A frame that is not masked is no client's.
	if _, err := c.ws.NetConn().Write([]byte{0x81, 0x02, '{', '}'}); err != nil {
		t.Fatal(err)
	}
	c.wantClose(websocket.CloseProtocolError)
}

func TestOnlyTheProtocolIsSpoken(t *testing.T) {
	t.Parallel()
	e := open(t)
	for _, protocols := range [][]string{{}, {"nope"}, {"graphql-ws"}} {
		c := e.dial(t, protocols...)
		if c.ws.Subprotocol() != "" {
			t.Errorf("%q: the server took %q", protocols, c.ws.Subprotocol())
		}
		c.wantClose(4406)
	}
	if c := e.dial(t, "graphql-ws", protocol); c.ws.Subprotocol() != protocol {
		t.Errorf("the server took %q", c.ws.Subprotocol())
	}
}

func TestRequestsThatDoNotBecomeSockets(t *testing.T) {
	t.Parallel()
	e := open(t)
	for name, test := range map[string]struct {
		header http.Header
		status int
	}{
		"no Connection": {http.Header{"Upgrade": {"websocket"}}, 400},
		"no key":        {http.Header{"Upgrade": {"WebSocket"}, "Connection": {"upgrade"}, "Sec-Websocket-Version": {"13"}}, 400},
		"an old one":    {http.Header{"Upgrade": {"websocket"}, "Connection": {"upgrade"}, "Sec-Websocket-Version": {"8"}}, 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = test.header
		response, err := e.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.status || response.Header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: %s %v", name, response.Status, response.Header)
		}
	}
}

// The header of an upgrade says nothing: pages cannot set it, and what is in connection_init must stand for itself.
func TestTheTokenIsThatOfConnectionInit(t *testing.T) {
	t.Parallel()
	e := open(t)
	header := http.Header{"Authorization": {"Bearer " + token(t, "8", time.Now().Add(time.Hour))}}
	for send, code := range map[string]int{
		`{"type":"connection_init"}`:                                          4403,
		`{"type":"connection_init","payload":{"Authorization":"Bearer bad"}}`: 4403,
		initAsAnn: 0,
	} {
		c := e.dialWith(t, header, websocket.Dialer{Subprotocols: []string{protocol}})
		c.send(send)
		if code != 0 {
			c.wantClose(code)
			continue
		}
		c.send(subscribe("1", "{me}"))
		c.want(ack, next("1", `{"me":"Person 7"}`), complete("1"))
	}
	if got := e.transport.Stats().Refused; got != 2 {
		t.Errorf("%d were refused, want 2", got)
	}
}

func TestIDsAreFreeAgain(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	for range 3 {
		c.send(subscribe("1", "{me}"))
		c.want(next("1", `{"me":"Person 7"}`), complete("1"))
		c.send(subscribe("1", "{refused}"))
		c.wantError("1", fault.Forbidden)

		c.send(values)
		tap := e.tap(t)
		tap.Say("1")
		c.want(next("1", `{"values":1}`))
		c.send(complete("1"))
		receive(t, tap.Closed, "the stream is closed")
		tap.Say("2")
		c.quiet()
	}
}
