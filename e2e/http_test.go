package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestGETIsForQueries(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 3)
	const query = `query ($first: Int!) { badges(first: $first) { nodes { version unread { label } } } }`
	asked := a.get("/graphql?" + url.Values{"query": {query}, "variables": {`{"first": 1}`}}.Encode())
	expect(t, "the answer", asked.body, a.do(query, vars{"first": 1}).body)

	before := contents(t, s.database)
	mutation := `mutation { markRead(channelId: ` + channel + `, upToSeq: 3) { outcome } }`
	refused := a.get("/graphql?" + url.Values{"query": {mutation}}.Encode())
	expect(t, "the status of a mutation", refused.status, http.StatusMethodNotAllowed)
	expect(t, "its code", refused.code(), "BAD_USER_INPUT")
	for _, body := range []string{"", "{}", "[]", "null", "x", `{"query": 1}`, `{"query": "{"}`, `[{"query": "{ me { id } }"}]`} {
		r, err := a.call(http.MethodPost, "/graphql", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.code() == "" || r.code() == "INTERNAL" {
			t.Errorf("%s is answered with %s", body, r.body)
		}
	}
	unchanged(t, s.database, before)
}
