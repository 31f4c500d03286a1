package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/graph"
	"tidemark/internal/fault"
)

// draft is a document as it is made up: selections that are fields, inline fragments, or spreads of later fragments.
type draft struct {
	operation []selection
	fragments [][]selection
}

type selection struct {
	name   string // of a field; empty for a fragment
	spread int    // which fragment; -1 for none
	below  []selection
}

func drafts() *rapid.Generator[draft] {
	return rapid.Custom(func(t *rapid.T) draft {
		d := draft{fragments: make([][]selection, rapid.IntRange(0, 4).Draw(t, "fragments"))}
		var set func(depth, spreadable int) []selection
		set = func(depth, spreadable int) []selection {
			made := make([]selection, rapid.IntRange(1, 3).Draw(t, "selections"))
			for i := range made {
				s := selection{spread: -1}
				switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
				case kind == 0 && spreadable < len(d.fragments):
					s.spread = rapid.IntRange(spreadable, len(d.fragments)-1).Draw(t, "spread")
				case kind == 1 && depth > 0:
					s.below = set(depth-1, spreadable)
				default:
					s.name = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
					if depth > 0 && rapid.Bool().Draw(t, "nested") {
						s.below = set(depth-1, spreadable)
					}
				}
				made[i] = s
			}
			return made
		}
		d.operation = set(3, 0)
		for i := range d.fragments {
			d.fragments[i] = set(2, i+1)
		}
		return d
	})
}

func (d draft) String() string {
	var text strings.Builder
	text.WriteString(written(d.operation))
	for i, fragment := range d.fragments {
		fmt.Fprintf(&text, " fragment F%d on Query %s", i, written(fragment))
	}
	return text.String()
}

func written(set []selection) string {
	parts := make([]string, len(set))
	for i, s := range set {
		switch {
		case s.spread >= 0:
			parts[i] = fmt.Sprintf("...F%d", s.spread)
		case s.name == "":
			parts[i] = "..." + written(s.below)
		case s.below == nil:
			parts[i] = s.name
		default:
			parts[i] = s.name + written(s.below)
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// field is one with all that leads to it, and the inline fragments right around it.
type field struct {
	path   string
	inline int
}

// writeOut lists the fields of a set with all fragments written out, and counts the fragments.
func (d draft) writeOut(set []selection, path string, inline int) (fields []field, fragments int) {
	for _, s := range set {
		var inside []field
		var n int
		switch {
		case s.spread >= 0:
			inside, n = d.writeOut(d.fragments[s.spread], path, inline)
			n++
		case s.name == "":
			inside, n = d.writeOut(s.below, path, inline+1)
			n++
		default:
			fields = append(fields, field{path + s.name, inline})
			inside, n = d.writeOut(s.below, path+s.name, 0)
		}
		fields, fragments = append(fields, inside...), fragments+n
	}
	return fields, fragments
}

func depthOf(fields []field) (depth int) {
	for _, f := range fields {
		depth = max(depth, len(f.path))
	}
	return depth
}

// repeatsIn counts the pairs of fields that go to one place, each as often as inline fragments have it compared.
func repeatsIn(fields []field) (repeats int) {
	for i, later := range fields {
		for _, earlier := range fields[:i] {
			if earlier.path == later.path {
				repeats += 1 + later.inline
			}
		}
	}
	return repeats
}

func TestTheGuardCountsWhatIsWrittenOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := drafts().Draw(rt, "document")
		fields, fragments := d.writeOut(d.operation, "", 0)
		roots := make(map[byte]bool)
		for _, f := range fields {
			roots[f.path[0]] = true
		}
		selections, repeats, depth := len(fields)+fragments, repeatsIn(fields), depthOf(fields)
		for _, fragment := range d.fragments {
			fields, fragments := d.writeOut(fragment, "", 0)
			selections += len(fields) + fragments
			repeats += repeatsIn(fields)
			depth = max(depth, depthOf(fields))
		}
		refused := func(limits graph.Limits) bool {
			api := serve(func(cfg *graph.Config) { cfg.Limits = limits })
			return ask(t, api, d.String()).code() == string(fault.QueryTooLarge)
		}
		roomy := graph.Limits{Selections: 1 << 20, Repeats: 1 << 20, Depth: 1 << 20, RootFields: 1 << 20}
		for _, limit := range []struct {
			name string
			set  func(*graph.Limits, int)
			is   int
		}{
			{"Selections", func(l *graph.Limits, n int) { l.Selections = n }, selections},
			{"Repeats", func(l *graph.Limits, n int) { l.Repeats = n }, repeats},
			{"Depth", func(l *graph.Limits, n int) { l.Depth = n }, depth},
			{"RootFields", func(l *graph.Limits, n int) { l.RootFields = n }, len(roots)},
		} {
			exact, less := roomy, roomy
			limit.set(&exact, max(limit.is, 1)) // 0 is the default
			limit.set(&less, limit.is-1)
			if refused(exact) {
				rt.Errorf("%s %d: %s is refused", limit.name, limit.is, d)
			}
			if limit.is > 1 && !refused(less) {
				rt.Errorf("%s %d: %s is not refused", limit.name, limit.is-1, d)
			}
		}
	})
}

func TestLimitsOfAQuery(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"bytes":      `{me{id}}` + strings.Repeat(" ", 16<<10),
		"tokens":     `{me{` + strings.Repeat("id ", 2000) + `}}`,
		"comments":   `{me{id}}` + strings.Repeat("#\n", 2000),
		"selections": `{...F ...F} fragment F on Query{me{badgeTotal{` + repeat(499, func(i int) string { return fmt.Sprintf("a%d:unreadChannels ", i) }) + `}}}`,
		"depth":      strings.Repeat("{a", 17) + strings.Repeat("}", 17),
		"roots":      `{` + repeat(21, func(i int) string { return fmt.Sprintf("a%d:me{id} ", i) }) + `}`,
		"roots in fragments": `{` + repeat(11, func(i int) string { return fmt.Sprintf("a%d:me{id} ", i) }) + `...{...F}} fragment F on Query{` +
			repeat(11, func(i int) string { return fmt.Sprintf("b%d:me{id} ", i) }) + `}`,
		"repeats":           `{me{` + strings.Repeat("id ", 200) + `}}`,
		"repeats in parts":  `{` + strings.Repeat("me{id} ", 200) + `}`,
		"repeats in inline": `{me{` + strings.Repeat("...{", 50) + strings.Repeat("id ", 50) + strings.Repeat("}", 50) + `}}`,
		"doubling": `{me{...F0}}` + repeat(24, func(i int) string { return fmt.Sprintf(" fragment F%d on Viewer{...F%d ...F%d}", i, i+1, i+1) }) +
			` fragment F24 on Viewer{id}`,
		"second operation": `query A{me{id}} query B{me{` + strings.Repeat("id ", 200) + `}}`,
		"unused fragment":  `{me{id}} fragment F on Viewer{` + strings.Repeat("id ", 200) + `}`,
	} {
		if got := ask(t, serve(), query); got.code() != string(fault.QueryTooLarge) || !strings.HasPrefix(got.Errors[0].Message, "the query ") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if got := ask(t, serve(), `{...A} fragment A on Query{...B} fragment B on Query{...A}`); got.code() != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("a cycle: %s", got.body)
	}
	if got := ask(t, serve(), `{`+repeat(20, func(i int) string { return fmt.Sprintf("a%d:me{id} a%d:me{id displayName} ", i, i) })+`}`); got.code() != "" {
		t.Errorf("20 fields that are named twice: %s", got.body)
	}
}

// GraphiQL's own question about the schema is the deepest that a developer's tools ask.
func TestTheSchemaCanBeAskedForAsGraphiQLDoes(t *testing.T) {
	t.Parallel()
	const query = `query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name }
		types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
		fragment FullType on __Type { kind name description specifiedByURL isOneOf
		  fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
		  inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef }
		  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
		fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
		fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
		  ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`
	if got := ask(t, serve(introspective), query); got.code() != "" || !strings.Contains(got.body, `"BadgeConnection"`) {
		t.Errorf("%.300s", got.body)
	}
}
