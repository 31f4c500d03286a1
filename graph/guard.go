package graph

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"tidemark/internal/fault"
)

// maxVariableValues bounds what is looked at of the variables, because reading a value costs far more than parsing it
// did. It is some times the longest list that an argument takes: one that is a little too long is refused by the
// argument's name.
const maxVariableValues = 10_000

// guard refuses queries that are too large, before they are validated: a few kilobytes can be a second's work for
// the rules, and more for whatever follows fragments. It reads the text once more than the executor does, but only
// the first time that it comes.
type guard struct {
	limits Limits
	passed graphql.Cache[*ast.QueryDocument]
}

var (
	_ graphql.HandlerExtension          = guard{}
	_ graphql.OperationParameterMutator = guard{}
)

// ExtensionName implements graphql.HandlerExtension.
func (guard) ExtensionName() string { return "Guard" }

// Validate implements graphql.HandlerExtension.
func (guard) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters implements graphql.OperationParameterMutator.
func (g guard) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if len(params.Query) > g.limits.QueryBytes {
		return tooLarge("has more than %d bytes", g.limits.QueryBytes)
	}
	values := 0
	for name, value := range params.Variables {
		if values += valuesIn(value); values > maxVariableValues {
			return gqlerror.Wrap(fault.BadInput("$"+name, "has more values than any argument takes"))
		}
	}
	if _, known := g.passed.Get(ctx, params.Query); known {
		return nil
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: params.Query}, g.limits.Tokens)
	if err != nil {
		if strings.Contains(err.Error(), "exceeded token limit") {
			return tooLarge("has more than %d words and signs", g.limits.Tokens)
		}
		return nil // the executor finds the same, and says so
	}
	return g.check(doc)
}

// check goes over every operation and fragment, as validation does, with all fragments written out. It ends at the
// first limit that is passed, so it takes no longer than the limits are large, however often fragments double.
func (g guard) check(doc *ast.QueryDocument) *gqlerror.Error {
	m := measure{limits: g.limits, fragments: doc.Fragments, inside: make(map[string]bool)}
	for _, operation := range doc.Operations {
		var root place
		if err := m.walk(operation.SelectionSet, &root, 1, 1); err != nil {
			return err
		}
		if len(root.below) > g.limits.RootFields {
			return tooLarge("asks for more than %d fields at once", g.limits.RootFields)
		}
	}
	for _, fragment := range doc.Fragments {
		if err := m.walk(fragment.SelectionSet, new(place), 1, 1); err != nil {
			return err
		}
	}
	return nil
}

// measure is what was counted of a document so far.
type measure struct {
	limits     Limits
	fragments  ast.FragmentDefinitionList
	inside     map[string]bool // the fragments that are being written out
	selections int
	repeats    int
}

// place is where an answer's fields of one name go.
type place struct {
	times int
	below map[string]*place
}

func (p *place) field(name string) *place {
	if p.below == nil {
		p.below = make(map[string]*place)
	}
	if p.below[name] == nil {
		p.below[name] = new(place)
	}
	return p.below[name]
}

// walk counts a set of selections. weight is how often validation compares its fields: once more for each inline
// fragment around them.
func (m *measure) walk(set ast.SelectionSet, at *place, depth, weight int) *gqlerror.Error {
	for _, selection := range set {
		if m.selections++; m.selections > m.limits.Selections {
			return tooLarge("has more than %d fields, with its fragments written out", m.limits.Selections)
		}
		var err *gqlerror.Error
		switch s := selection.(type) {
		case *ast.Field:
			if depth > m.limits.Depth {
				return tooLarge("is nested deeper than %d fields", m.limits.Depth)
			}
			field := at.field(s.Alias)
			if m.repeats += field.times * weight; m.repeats > m.limits.Repeats {
				return tooLarge("repeats its fields too often")
			}
			field.times++
			err = m.walk(s.SelectionSet, field, depth+1, 1)
		case *ast.InlineFragment:
			err = m.walk(s.SelectionSet, at, depth, weight+1)
		case *ast.FragmentSpread:
			fragment := m.fragments.ForName(s.Name)
			if fragment == nil || m.inside[s.Name] {
				continue // for validation to refuse
			}
			m.inside[s.Name] = true
			err = m.walk(fragment.SelectionSet, at, depth, weight)
			m.inside[s.Name] = false
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// valuesIn counts the values that a decoded JSON value is made of.
func valuesIn(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			n += valuesIn(entry)
		}
	case map[string]any:
		for _, entry := range v {
			n += valuesIn(entry)
		}
	}
	return n
}

func tooLarge(rule string, args ...any) *gqlerror.Error {
	return gqlerror.Wrap(fault.New(fault.QueryTooLarge, "the query "+rule, args...))
}
