// Package internal_test holds the rules of who may import whom.
package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule says that packages must not depend on others, not even through third ones. A name ending in /... stands for
// a package and all below it.
type rule struct {
	packages []string
	except   []string
	never    []string
	because  string
}

func rules() []rule {
	graphQL := []string{"tidemark/graph/...", "github.com/99designs/gqlgen/...", "github.com/vektah/gqlparser/v2/..."}
	postgres := []string{"tidemark/internal/postgres/...", "tidemark/migrations", "github.com/jackc/pgx/v5/...", "database/sql"}
	redis := []string{"tidemark/internal/redis/...", "github.com/redis/go-redis/v9/..."}
	edges := []string{"tidemark/internal/embedded/...", "tidemark/playground", "tidemark/web", "net/http"}
	domain := []string{
		"tidemark/internal/breaker", "tidemark/internal/wait", "tidemark/internal/fault", "tidemark/internal/id", "tidemark/internal/person", "tidemark/internal/channel",
		"tidemark/internal/readstate", "tidemark/internal/delivery", "tidemark/internal/live",
		"tidemark/internal/newlyunread", "tidemark/internal/presence", "tidemark/internal/receipt",
		"tidemark/internal/verify", "tidemark/internal/inspect",
	}
	return []rule{
		{
			packages: domain, never: slices.Concat(graphQL, postgres, redis, edges),
			because: "the domain decides and knows nothing of how it is asked or where things are kept: let it declare an " +
				"interface, and an adapter or graph implement or call it",
		},
		{
			packages: []string{"tidemark/graph/..."}, never: slices.Concat(postgres, redis),
			because: "graph translates and calls the domain, which alone knows when to ask a store",
		},
		{
			packages: []string{"tidemark/internal/postgres/..."}, never: slices.Concat(graphQL, redis),
			because: "an adapter knows its own technology and the domain, and nothing of those who call it",
		},
		{
			packages: []string{"tidemark/internal/redis/..."}, never: slices.Concat(graphQL, postgres),
			except:  []string{"tidemark/internal/redis/redistest"}, // starts engines, and the package that does has both
			because: "an adapter knows its own technology and the domain, and nothing of those who call it",
		},
		{
			packages: []string{"tidemark/..."}, never: []string{"tidemark/internal/postgres", "tidemark/internal/redis"},
			except: []string{
				"tidemark", "tidemark/e2e/...", "tidemark/bench/...", "tidemark/internal/postgres", "tidemark/internal/redis",
			},
			because: "only package main puts adapters together: take what is needed as an interface",
		},
		{
			packages: []string{"tidemark"}, never: []string{
				"testing", "tidemark/internal/postgres/pgtest", "tidemark/internal/redis/redistest", "tidemark/internal/live/brokertest",
			},
			because: "what tests need does not go into the program",
		},
	}
}

func TestImportsPointInward(t *testing.T) {
	imports := readImports(t)
	for _, rule := range rules() {
		checked := 0
		for name := range imports {
			if !matches(rule.packages, name) || matches(rule.except, name) {
				continue
			}
			checked++
			if way := wayToAny(imports, name, rule.never); way != nil {
				t.Errorf("%s must not depend on %s, because %s. It does by way of\n  %s",
					name, way[len(way)-1], rule.because, strings.Join(way, "\n  "))
			}
		}
		if checked == 0 {
			t.Errorf("no package is called as in %v: the rule holds nothing together any more", rule.packages)
		}
	}
}

// readImports returns what each package of the program imports, tests left aside.
func readImports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "tidemark/...")
	var complaint strings.Builder
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaint.String())
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		imports[names[0]] = names[1:]
	}
	return imports
}

// wayToAny returns the shortest chain of imports from a package to one of those that it must not reach.
func wayToAny(imports map[string][]string, from string, never []string) []string {
	ways := [][]string{{from}}
	seen := map[string]bool{from: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range imports[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			further := append(slices.Clone(way), next)
			if matches(never, next) {
				return further
			}
			ways = append(ways, further)
		}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		below, tree := strings.CutSuffix(pattern, "/...")
		return name == below || tree && strings.HasPrefix(name, below+"/")
	})
}
