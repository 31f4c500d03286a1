package graph_test

import (
	"net/http"
	"testing"

	"tidemark/internal/fault"
)

// Whatever a body holds, it is answered with JSON and never by an internal error, and the same when it comes again.
func FuzzPost(f *testing.F) {
	for _, query := range refused() {
		f.Add(params{Query: query}.json(f))
	}
	for _, query := range harmless() {
		f.Add(params{Query: query}.json(f))
	}
	for _, body := range []string{
		`{"query":"query A($n:Int=3){badges(first:$n){nodes{id unread{label}} pageInfo{endCursor}}}","operationName":"A","variables":{"n":5}}`,
		`{"query":"mutation($c:[ReadCursor!]!){markManyRead(cursors:$c){outcome badge{channel{members{nodes{displayName}}}}}}","variables":{"c":[{"channelId":"1","upToSeq":2,"readEpoch":null}]}}`,
		`{"query":"mutation($i:CreateChannelInput!){createChannel(input:$i){kind name}}","variables":{"i":{"kind":"GROUP","name":null,"memberIds":["1",2]}}}`,
		`{"query":"mutation{confirmDelivery(deviceId:\"d\" cursors:[{channelId:1 seq:2 version:3}]){confirmedAt} forgetDevice(deviceId:1)}"}`,
		`{"query":"{syncChannel(channelId:1 deviceId:\"d\" after:7 limit:2){...on ChannelDiff{messages{createdAt sender{id}}} ...on ChannelResync{reason}}}"}`,
		`{"query":"mutation{deleteMessage(channelId:1 seq:1){body} setMuted(channelId:1 muted:true){muted} removeMember(channelId:1 userId:1){id}}"}`,
		`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"}}}`,
		`{"query":"{__schema{types{name fields(includeDeprecated:true){type{ofType{name}}}}}}"}`,
		`[{"query":"{__typename}"}]`, `{"query":7}`, `null`,
	} {
		f.Add(body)
	}
	api := serve(introspective)
	f.Fuzz(func(t *testing.T, body string) {
		send := func() answer {
			return do(t, api, http.MethodPost, "/graphql", body, as(ann), with("Content-Type", "application/json"))
		}
		first, again := send(), send()
		if first.code() == string(fault.Internal) || first.status >= 500 {
			t.Errorf("%d %s", first.status, first.body)
		}
		if first.status != again.status || first.code() != again.code() {
			t.Errorf("%d %s, and then %d %s", first.status, first.body, again.status, again.body)
		}
	})
}
