package graph_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The audits of graphql-http are the specification of GraphQL over HTTP, a request each.
func TestTheAuditsOfGraphQLOverHTTP(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("audit/node_modules/graphql-http"); err != nil {
		t.Fatalf("%v\nRun make setup.", err)
	}
	server := httptest.NewServer(serve(introspective))
	defer server.Close()
	if out := run(t, "node", "audit.mjs", server.URL); out != "61 of 61" {
		t.Error(out)
	}
}

// run runs a program in the audit's directory, and returns what it printed.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("the audits need Node 20 or later, with npm: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = "audit"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}
