package graph_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"tidemark/graph"
	"tidemark/graph/feed"
	"tidemark/graph/generated"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
)

// oneChange is a stream of one change, over and over.
type oneChange struct{ change live.BadgeChange }

func (o oneChange) Next() (live.BadgeChange, bool, error) { return o.change, true, nil }
func (oneChange) Notify(func())                           {}
func (oneChange) Again()                                  {}
func (oneChange) Close()                                  {}

// changes is a schema whose badgeChanged tells one change.
type changes struct {
	*graph.Resolver
	change live.BadgeChange
}

func (c changes) Subscription() generated.SubscriptionResolver { return subscription{c} }

type subscription struct{ changes }

func (s subscription) BadgeChanged(ctx context.Context, _ []string, _ bool) (<-chan live.BadgeChange, error) {
	return feed.Open(ctx, oneChange{s.change}, s.BadgeChangeEncoder(ctx))
}

func (subscription) NewlyUnreadChanged(context.Context, bool) (<-chan newlyunread.Shown, error) {
	return make(chan newlyunread.Shown), nil
}

func (subscription) ChannelEvents(context.Context, string, *id.Seq, *id.Seq, *string) (<-chan live.ChannelEvent, error) {
	return make(chan live.ChannelEvent), nil
}

func (subscription) ReceiptChanged(context.Context, string, id.Seq) (<-chan receipt.Receipt, error) {
	return make(chan receipt.Receipt), nil
}

func (subscription) InspectionChanged(context.Context, string) (<-chan inspect.Change, error) {
	return make(chan inspect.Change), nil
}

// TestChangesAreWrittenAsTheExecutorWritesThem compares, byte by byte, for drawn selections and values.
func TestChangesAreWrittenAsTheExecutorWritesThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := selections{t: t}
		query := "subscription($limit: Int!, $yes: Boolean!, $no: Boolean!) { " + s.alias() + "badgeChanged { __typename @include(if: $yes) @skip(if: $no) total { unread(cap: $limit) { count } } ... on BadgeChange " +
			s.object("BadgeChange", 0) + " } } " + s.fragments.String()
		if rapid.Bool().Draw(t, "with nothing variable") { // then what is laid out is shared
			query = strings.NewReplacer("($limit: Int!, $yes: Boolean!, $no: Boolean!)", "", "$limit", "77", "$yes", "true", "$no", "false").Replace(query)
		}
		exec := executor.New(generated.NewExecutableSchema(generated.Config{Resolvers: changes{&graph.Resolver{}, drawChange(t)}}))
		exec.SetQueryCache(graphql.MapCache[*ast.QueryDocument]{})
		params := graphql.RawParams{Query: query, Variables: map[string]any{
			"limit": rapid.IntRange(1, readstate.MaxCap).Draw(t, "limit"), "yes": true, "no": false,
		}}
		want := first(t, exec, params, nil)
		for range 2 {
			var f feed.Feed
			first(t, exec, params, &f)
			data, some, err := f.Take()
			if err != nil || !some || data == nil {
				t.Fatalf("%s: not laid out: %v", query, err)
			}
			if string(data) != want {
				t.Fatalf("%s\ngot  %s\nwant %s", query, data, want)
			}
		}
	})
}

// What is not in the event is looked up, and so is written by the executor.
func TestWhatIsLookedUpIsNotLaidOut(t *testing.T) {
	t.Parallel()
	exec := executor.New(generated.NewExecutableSchema(generated.Config{Resolvers: changes{Resolver: &graph.Resolver{}}}))
	var f feed.Feed
	first(t, exec, graphql.RawParams{Query: `subscription { badgeChanged { badges { channel { id name } } } }`}, &f)
	if data, some, err := f.Take(); data != nil || !some || err != nil {
		t.Errorf("%s, %v, %v", data, some, err)
	}
}

type fataler interface {
	Context() context.Context
	Fatalf(format string, args ...any)
}

// first begins an operation; without a feed it returns the data of its first response.
func first(t fataler, exec *executor.Executor, params graphql.RawParams, f *feed.Feed) string {
	ctx, cancel := context.WithCancel(graphql.StartOperationTrace(t.Context()))
	defer cancel()
	if f != nil {
		ctx = feed.NewContext(ctx, f)
	}
	operation, errs := exec.CreateOperationContext(ctx, &params)
	if errs != nil {
		t.Fatalf("%s: %v", params.Query, errs)
	}
	respond, ctx := exec.DispatchOperation(ctx, operation)
	if f != nil {
		return ""
	}
	response := respond(ctx)
	if len(response.Errors) > 0 {
		t.Fatalf("%s: %v", params.Query, response.Errors)
	}
	return string(response.Data)
}

// selections draws what a client may ask for.
type selections struct {
	t         *rapid.T
	fragments strings.Builder
	names     int
}

func (s *selections) object(name string, depth int) string {
	fields := map[string]map[string]string{
		"BadgeChange": {"snapshot": "", "badges": "Badge", "removedChannelIds": "", "total": "BadgeTotal", "storeEpoch": ""},
		"Badge": {
			"id": "", "version": "", "channel": "Channel", "highWaterSeq": "", "lastReadSeq": "", "readEpoch": "",
			"unreadUpperBound": "", "unread": "UnreadCount", "mentions": "UnreadCount", "muted": "",
		},
		"BadgeTotal":  {"unread": "UnreadCount", "unreadChannels": "", "mentions": "UnreadCount"},
		"UnreadCount": {"count": "", "capped": "", "label": ""},
		"Channel":     {"id": "", "highWaterSeq": ""},
	}[name]
	names := slices.Sorted(maps.Keys(fields)) // the same list each time, for rapid to draw from
	var set strings.Builder
	set.WriteString("{ __typename ")
	for range rapid.IntRange(0, 5).Draw(s.t, "fields") {
		field := rapid.SampledFrom(append(names, "__typename")).Draw(s.t, "field")
		text := s.alias() + field
		if fields[field] == "UnreadCount" {
			text += rapid.SampledFrom([]string{"", "(cap: 5)", "(cap: $limit)"}).Draw(s.t, "cap")
		}
		text += rapid.SampledFrom([]string{"", "", " @include(if: $yes)", " @skip(if: $yes)", " @include(if: $no)"}).Draw(s.t, "directive")
		if fields[field] != "" {
			text += " " + s.object(fields[field], depth+1)
		}
		set.WriteString(text + " ")
	}
	if depth < 3 && rapid.IntRange(0, 3).Draw(s.t, "fragment at 0") == 0 {
		switch rapid.IntRange(0, 1).Draw(s.t, "kind") {
		case 0:
			set.WriteString("... on " + name + " " + s.object(name, depth+1) + " ")
		default:
			s.names++
			fragment := fmt.Sprintf("f%d", s.names)
			text := s.object(name, depth+1)
			s.fragments.WriteString("fragment " + fragment + " on " + name + " " + text + " ")
			set.WriteString("..." + fragment + " ")
		}
	}
	return set.String() + "}"
}

// alias makes each field another, so that none conflict.
func (s *selections) alias() string {
	s.names++
	return fmt.Sprintf("a%d: ", s.names)
}

func drawChange(t *rapid.T) live.BadgeChange {
	number := func(name string) int { return rapid.IntRange(0, 12_000).Draw(t, name) }
	change := live.BadgeChange{
		Snapshot: rapid.Bool().Draw(t, "snapshot"), StoreEpoch: rapid.String().Draw(t, "store"),
		Total:             readstate.Total{Countable: number("unread"), Naming: number("mentions"), UnreadChannels: number("channels")},
		RemovedChannelIDs: []id.Channel{}, Badges: []readstate.Badge{},
	}
	for range rapid.IntRange(0, 3).Draw(t, "removed") {
		change.RemovedChannelIDs = append(change.RemovedChannelIDs, id.Channel(rapid.Int64Min(1).Draw(t, "channel")))
	}
	for range rapid.IntRange(0, 3).Draw(t, "badges") {
		change.Badges = append(change.Badges, readstate.Badge{
			UserID: id.User(rapid.Int64Min(1).Draw(t, "user")), ChannelID: id.Channel(rapid.Int64Min(1).Draw(t, "channel")),
			HeadVersion: id.Seq(number("head")), StateVersion: id.Seq(number("state")), HighWaterSeq: id.Seq(number("high water")),
			LastReadSeq: id.Seq(number("last read")), ReadEpoch: number("epoch"), Muted: rapid.Bool().Draw(t, "muted"),
			Countable: number("unread"), Naming: number("mentions"),
		})
	}
	return change
}
