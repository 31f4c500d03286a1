package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"tidemark/graph"
	"tidemark/internal/fault"
)

const (
	everyBadgeField = `id version channel { id kind name memberCount } highWaterSeq lastReadSeq readEpoch unreadUpperBound
		unread { count capped label } mentions { count capped label } muted`
	everyMessageField = `id channelId seq sender { id displayName } body createdAt deleted mentionsViewer clientMessageId`
)

func TestSensibleQueriesAreAffordable(t *testing.T) {
	t.Parallel()
	api := serve()
	for _, query := range []string{
		`{me{id displayName badgeTotal{unread{count capped label} unreadChannels mentions{count}}}
		  badges(first:500 includeMuted:true){edges{cursor node{` + everyBadgeField + `}} total{unread{count}} storeEpoch pageInfo{hasNextPage endCursor}}}`,
		`{badges(first:500){nodes{__typename ` + everyBadgeField + ` channel{__typename highWaterSeq}} edges{cursor}}}`,
		`{syncChannel(channelId:1 deviceId:"d" limit:500){
		  ... on ChannelDiff{messages{` + everyMessageField + `} deletedSeqs fromSeq toSeq hasMore version storeEpoch badge{` + everyBadgeField + `}}
		  ... on ChannelResync{reason maxGap messages{` + everyMessageField + `} toSeq version storeEpoch badge{` + everyBadgeField + `}}}}`,
		`{badges(first:500){nodes{id channel{id highWaterSeq}}}}`,
		`{channel(id:1){members(first:500){edges{cursor node{id displayName}} nodes{id displayName} pageInfo{endCursor}}}}`,
		`{inspection(userId:1 first:500){devices{id} badges{channelId version lastReadSeq unread{label} devices{deviceId lastDeliveredSeq confirmedAt} summary}}}`,
	} {
		if got := ask(t, api, query); got.code() != "" {
			t.Errorf("%s:\n%.300s", query, got.body)
		}
	}
}

func TestExtravagantQueriesAreNot(t *testing.T) {
	t.Parallel()
	api := serve()
	for _, query := range []string{
		`{badges(first:500){nodes{channel{members(first:500){nodes{id}}}}}}`,
		`{badges(first:500){nodes{channel{members(first:1){nodes{id}}}}}}`,
		`{badges(first:500){nodes{channel{messages(last:1){id}}}}}`,
		`{badges(first:500){edges{node{channel{...F}}}}} fragment F on Channel{members(first:500){nodes{id}}}`,
		`query($n: Int!){badges(first:$n){nodes{channel{messages(last:$n){id}}}}}`,
		`query($n: Int! = 500){badges(first:$n){nodes{channel{messages(last:$n){id}}}}}`,
		`{badges(first:500){nodes{a:unread(cap:10000){count} b:mentions(cap:10000){count}}}}`,
		`{badges(first:500){nodes{` + repeat(100, func(i int) string { return fmt.Sprintf("a%d:id ", i) }) + `}}}`,
	} {
		got := askWith(t, api, query, map[string]any{"n": 500})
		wantCode(t, got, fault.QueryTooLarge)
	}
	if got := ask(t, serve(func(cfg *graph.Config) { cfg.Limits.Complexity = 10 }), `{me{id}}`); got.code() != string(fault.QueryTooLarge) {
		t.Error(got.body)
	}
}

// A size that nobody may ask for is the domain's to refuse, whatever it is multiplied with.
func TestSizesOutOfBoundsAreNoOverflow(t *testing.T) {
	t.Parallel()
	api := serve()
	for _, size := range []string{"0", "-1", "501", "2147483647", "9223372036854775807", "-9223372036854775808"} {
		const nested = `{nodes{channel{members(first:%s){nodes{id displayName}}}}}`
		got := ask(t, api, fmt.Sprintf(`{badges(first:%s)`+nested+`}`, size, size))
		wantCode(t, got, fault.BadUserInput)
		if got.Errors[0].Extensions.Argument != "first" || !strings.HasPrefix(got.Errors[0].Message, "first ") {
			t.Errorf("%s: %s", size, got.body)
		}
	}
	cursors := strings.Repeat(`{"channelId":"1","upToSeq":1},`, 10_000)
	got := do(t, api, "POST", "/graphql", `{"query":"mutation($c:[ReadCursor!]!){markManyRead(cursors:$c){outcome badge{id}}}","variables":{"c":[`+
		cursors[:len(cursors)-1]+`]}}`, as(ann))
	wantCode(t, got, fault.BadUserInput)
}

func repeat(n int, part func(i int) string) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(part(i))
	}
	return all.String()
}
