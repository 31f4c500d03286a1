package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tidemark/graph"
	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = person.Viewer{ID: 7, Name: "Ann", Role: person.RoleUser}

// domain answers for all parts of the domain: lists as long as they are asked for, and no word about anything else.
// Where fail is set, everything ends with it.
type domain struct {
	fail func(ctx context.Context) error
}

var (
	_ graph.ReadStates  = domain{}
	_ graph.Channels    = domain{}
	_ graph.Deliveries  = domain{}
	_ graph.People      = people{}
	_ graph.NewlyUnread = arrivals{}
	_ graph.Inspector   = domain{}
)

func (d domain) resolver() *graph.Resolver {
	return &graph.Resolver{ReadStates: d, Channels: d, Deliveries: d, People: people{d}, Arrivals: arrivals{d}, Inspector: d}
}

func (d domain) failure(ctx context.Context) error {
	if d.fail == nil {
		return nil
	}
	return d.fail(ctx)
}

func (d domain) List(ctx context.Context, user id.User, filter readstate.Filter) (readstate.Page, error) {
	if err := fault.CheckRange("first", filter.First, 1, readstate.MaxPage); err != nil {
		return readstate.Page{}, err
	}
	badges := make([]readstate.Badge, filter.First)
	for i := range badges {
		badges[i] = readstate.Badge{UserID: user, ChannelID: id.Channel(i + 1), HighWaterSeq: 9, LastReadSeq: 4, Countable: 5}
	}
	return readstate.Page{Badges: badges, StoreEpoch: "one"}, d.failure(ctx)
}

func (d domain) Total(ctx context.Context, _ id.User, _ int) (readstate.Total, error) {
	return readstate.Total{Countable: 3}, d.failure(ctx)
}

func (d domain) MarkRead(ctx context.Context, user id.User, _ id.Device, cursor readstate.Cursor, _ int) (readstate.Result, error) {
	badge := readstate.Badge{UserID: user, ChannelID: cursor.ChannelID, LastReadSeq: cursor.UpToSeq}
	return readstate.Result{ChannelID: cursor.ChannelID, Outcome: readstate.Advanced, Badge: &badge}, d.failure(ctx)
}

func (d domain) MarkManyRead(ctx context.Context, user id.User, device id.Device, cursors []readstate.Cursor, limit int) ([]readstate.Result, error) {
	if len(cursors) > readstate.MaxCursors {
		return nil, fault.BadInput("cursors", "must have at most %d entries", readstate.MaxCursors)
	}
	results := make([]readstate.Result, len(cursors))
	for i, c := range cursors {
		results[i], _ = d.MarkRead(ctx, user, device, c, limit)
	}
	return results, d.failure(ctx)
}

func (d domain) MarkUnread(ctx context.Context, user id.User, c id.Channel, seq id.Seq, _ *int, limit int) (readstate.Result, error) {
	return d.MarkRead(ctx, user, "", readstate.Cursor{ChannelID: c, UpToSeq: seq}, limit)
}

func (d domain) SetMuted(ctx context.Context, user id.User, c id.Channel, muted bool, _ int) (readstate.Badge, error) {
	return readstate.Badge{UserID: user, ChannelID: c, Muted: muted}, d.failure(ctx)
}

func (d domain) Get(ctx context.Context, _ person.Viewer, c id.Channel) (channel.Channel, error) {
	return channel.Channel{ID: c, Kind: channel.Group, Name: "one \u2028 <b>"}, d.failure(ctx)
}

func (d domain) GetMany(ctx context.Context, _ person.Viewer, ids []id.Channel) ([]channel.Channel, error) {
	channels := make([]channel.Channel, len(ids))
	for i, c := range ids {
		channels[i] = channel.Channel{ID: c, Kind: channel.Group}
	}
	return channels, d.failure(ctx)
}

func (d domain) Members(ctx context.Context, _ id.Channel, first int, _ id.User) (channel.MemberPage, error) {
	return channel.MemberPage{Members: make([]person.Person, max(0, min(first, channel.MaxPage)))}, d.failure(ctx)
}

func (d domain) AddMembers(ctx context.Context, _ person.Viewer, c id.Channel, users []id.User) (channel.Channel, error) {
	if len(users) > channel.MaxPeople {
		return channel.Channel{}, fault.BadInput("userIds", "must have at most %d entries", channel.MaxPeople)
	}
	return channel.Channel{ID: c, MemberCount: len(users)}, d.failure(ctx)
}

func (d domain) Create(ctx context.Context, _ person.Viewer, made channel.New) (channel.Channel, error) {
	if made.Kind == "" { // what gqlgen makes of a name in lower case
		return channel.Channel{}, fault.BadInput("input.kind", "must be DIRECT or GROUP")
	}
	return channel.Channel{ID: 1, Kind: made.Kind, Name: made.Name}, d.failure(ctx)
}

func (d domain) Send(ctx context.Context, viewer person.Viewer, draft channel.Draft, _ int) (channel.Sent, error) {
	message := messages(1)[0]
	message.Body = draft.Body
	return channel.Sent{Message: message, Badge: readstate.Badge{UserID: viewer.ID, ChannelID: draft.ChannelID}}, d.failure(ctx)
}

func (d domain) Messages(ctx context.Context, _ person.Viewer, _ channel.Channel, _ *id.Seq, last int) ([]channel.Message, error) {
	return messages(last), d.failure(ctx)
}

func (d domain) Delete(ctx context.Context, _ person.Viewer, _ id.Channel, _ id.Seq) (channel.Message, error) {
	return messages(1)[0], d.failure(ctx)
}

func (d domain) RemoveMember(ctx context.Context, _ person.Viewer, _ id.Channel, _ id.User) (*channel.Channel, error) {
	return nil, d.failure(ctx)
}

func (d domain) Sync(ctx context.Context, user id.User, req delivery.Request) (delivery.Sync, error) {
	return &delivery.Diff{
		Messages: messages(req.Limit), DeletedSeqs: []id.Seq{}, StoreEpoch: "one",
		Badge: readstate.Badge{UserID: user, ChannelID: req.ChannelID},
	}, d.failure(ctx)
}

func (d domain) SyncDevice(ctx context.Context, _ id.User, req delivery.DeviceRequest) (delivery.ActionPage, error) {
	channels := make([]delivery.ChannelAction, len(req.Held))
	for i, h := range req.Held {
		channels[i] = delivery.ChannelAction{ChannelID: h.ChannelID, Action: delivery.ActionNone}
	}
	return delivery.ActionPage{Channels: channels}, d.failure(ctx)
}

func (d domain) Confirm(ctx context.Context, _ id.User, device id.Device, _ *string, cursors []delivery.Confirmed) ([]delivery.Recorded, error) {
	recorded := make([]delivery.Recorded, len(cursors))
	for i, c := range cursors {
		recorded[i] = delivery.Recorded{ChannelID: c.ChannelID, DeviceID: device, LastDeliveredSeq: c.Seq}
	}
	return recorded, d.failure(ctx)
}

func (d domain) Forget(ctx context.Context, _ id.User, _ id.Device) (bool, error) {
	return true, d.failure(ctx)
}

func messages(n int) []channel.Message {
	made := make([]channel.Message, max(0, min(n, channel.MaxPage)))
	for i := range made {
		made[i].CreatedAt = time.Unix(int64(i), 0)
	}
	return made
}

type people struct{ domain }

func (p people) GetMany(ctx context.Context, users []id.User) (map[id.User]person.Person, error) {
	found := make(map[id.User]person.Person, len(users))
	for _, user := range users {
		found[user] = person.Called(user, "")
	}
	return found, p.failure(ctx)
}

// arrivals are those of as many people as are asked for.
type arrivals struct{ domain }

func (a arrivals) Get(ctx context.Context, _ id.User, first int) (newlyunread.Shown, error) {
	senders := make([]newlyunread.Sender, first)
	for i := range senders {
		senders[i].UserID = id.User(i + 1)
	}
	return newlyunread.Shown{Senders: senders}, a.failure(ctx)
}

func (a arrivals) Acknowledge(ctx context.Context, user id.User, _ *newlyunread.Position, first int) (newlyunread.Shown, error) {
	return a.Get(ctx, user, first)
}

func (p people) Get(ctx context.Context, user id.User) (person.Person, error) {
	return person.Called(user, "Ann"), p.failure(ctx)
}

// serve returns the API of a domain that knows no failure. Each option changes its configuration.
func serve(options ...func(*graph.Config)) http.Handler { return serveAPI(options...) }

func serveAPI(options ...func(*graph.Config)) *graph.Handler {
	cfg := graph.Config{Resolver: domain{}.resolver(), Logger: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&cfg)
	}
	return graph.NewHandler(cfg)
}

// failing makes everything that the domain is asked end with an error.
func failing(fail func(ctx context.Context) error) func(*graph.Config) {
	return func(cfg *graph.Config) { cfg.Resolver = domain{fail: fail}.resolver() }
}

// logged has the log written to a buffer, which may be read once a request is over.
func logged(to *bytes.Buffer) func(*graph.Config) {
	return func(cfg *graph.Config) { cfg.Logger = slog.New(slog.NewTextHandler(to, nil)) }
}

func introspective(cfg *graph.Config) { cfg.Introspection = true }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct {
			Code         string
			Argument     string
			RetryAfterMs int64
		}
	}
}

// code is the first error's, and empty where there is none.
func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// as signs a request in.
func as(viewer person.Viewer) func(*http.Request) {
	return func(r *http.Request) { *r = *r.WithContext(person.NewContext(r.Context(), viewer)) }
}

// with sets a header of a request, or removes it.
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
}

// do sends a request. A body is sent as JSON, unless an option says otherwise.
func do(tb testing.TB, handler http.Handler, method, target, body string, options ...func(*http.Request)) answer {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, option := range options {
		option(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	if a.body != "" {
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			tb.Fatalf("%q is not JSON: %v", a.body, err)
		}
	}
	return a
}

// params is what a request body holds.
type params struct {
	Query         string         `json:"query,omitempty"`
	OperationName string         `json:"operationName,omitempty"`
	Variables     map[string]any `json:"variables,omitempty"`
	Extensions    map[string]any `json:"extensions,omitempty"`
}

func (p params) json(tb testing.TB) string {
	tb.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

// ask posts a query as Ann.
func ask(tb testing.TB, handler http.Handler, query string, options ...func(*http.Request)) answer {
	tb.Helper()
	return askWith(tb, handler, query, nil, options...)
}

// askWith posts a query and its variables as Ann.
func askWith(tb testing.TB, handler http.Handler, query string, variables map[string]any, options ...func(*http.Request)) answer {
	tb.Helper()
	body := params{Query: query, Variables: variables}.json(tb)
	return do(tb, handler, http.MethodPost, "/graphql", body, append([]func(*http.Request){as(ann)}, options...)...)
}

// wantData fails unless the answer has just these data.
func wantData(tb testing.TB, got answer, data string) {
	tb.Helper()
	if want := `{"data":` + data + `}`; got.status != http.StatusOK || got.body != want {
		tb.Errorf("%d %s\nwant %s", got.status, got.body, want)
	}
}

// wantCode fails unless the answer's first error has the code.
func wantCode(tb testing.TB, got answer, code fault.Code) {
	tb.Helper()
	if got.code() != string(code) {
		tb.Errorf("%d %s\nwant %s", got.status, got.body, code)
	}
}
