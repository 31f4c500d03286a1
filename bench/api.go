package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"tidemark/graph"
	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

// api is Tidemark's API in this process, for what cannot be counted from outside.
type api struct{ handler http.Handler }

func newAPI(store *postgres.Store, maxGap int) api {
	readStates := readstate.New(store, nil)
	return api{graph.NewHandler(graph.Config{Resolver: &graph.Resolver{
		ReadStates: readStates,
		Channels:   channel.NewChannels(store, readStates, nil),
		Deliveries: delivery.New(store, readStates, maxGap),
	}})}
}

// ask returns the answer to a query of one person.
func (a api) ask(ctx context.Context, viewer id.User, query string) ([]byte, error) {
	ctx = person.NewContext(ctx, person.Viewer{ID: viewer, Role: person.RoleUser})
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/graphql", strings.NewReader(body(query)))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	a.handler.ServeHTTP(answer, request)
	return answer.Body.Bytes(), answered(answer.Body.Bytes())
}

// body is a query as it travels.
func body(query string) string { return `{"query":` + strconv.Quote(query) + `}` }

// answered says what is wrong with an answer.
func answered(answer []byte) error {
	if !bytes.HasPrefix(answer, []byte(`{"data":{`)) {
		return fmt.Errorf("the answer is %.300q", answer)
	}
	return nil
}
