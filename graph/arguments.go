package graph

import (
	"context"
	"fmt"
	"iter"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"tidemark/graph/scalar"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// viewer returns on whose behalf a field is resolved. Operations without a viewer end before any field is.
func viewer(ctx context.Context) person.Viewer {
	v, _ := person.FromContext(ctx)
	return v
}

// channelArg reads the argument of that name. gqlgen hands arguments of type ID over as strings, whatever they name.
func channelArg(name, text string) (id.Channel, error) {
	c, err := id.ParseChannel(text)
	return c, wrongID(name, err)
}

// userArg reads the argument of that name.
func userArg(name, text string) (id.User, error) {
	u, err := id.ParseUser(text)
	return u, wrongID(name, err)
}

// userOrViewer reads the argument of that name, which stands for the viewer where it is left out.
func userOrViewer(ctx context.Context, name string, text *string) (id.User, error) {
	if text == nil {
		return viewer(ctx).ID, nil
	}
	return userArg(name, *text)
}

// channelArgs reads a list. What is left out stays nil.
func channelArgs(name string, texts []string) ([]id.Channel, error) {
	if texts == nil {
		return nil, nil
	}
	channels := make([]id.Channel, len(texts))
	for i, text := range texts {
		var err error
		if channels[i], err = channelArg(fmt.Sprintf("%s[%d]", name, i), text); err != nil {
			return nil, err
		}
	}
	return channels, nil
}

// userArgs reads a list.
func userArgs(name string, texts []string) ([]id.User, error) {
	users := make([]id.User, len(texts))
	for i, text := range texts {
		var err error
		if users[i], err = userArg(fmt.Sprintf("%s[%d]", name, i), text); err != nil {
			return nil, err
		}
	}
	return users, nil
}

func wrongID(name string, err error) error {
	if err != nil {
		return scalar.WrongID(name)
	}
	return nil
}

// orEmpty reads an argument that may be left out.
func orEmpty[T ~string](text *string) T {
	if text == nil {
		return ""
	}
	return T(*text)
}

// countTo is how far the operation wants messages counted: the largest cap that it asks for. Badges are counted once
// and to there, before their fields are looked at.
func countTo(ctx context.Context) int {
	op := graphql.GetOperationContext(ctx)
	largest := readstate.DefaultCap
	for limit := range caps(op.Operation.SelectionSet, op.Variables) {
		largest = max(largest, limit)
	}
	return largest
}

// checkCaps refuses an operation with a cap that nobody may ask for. It does so before anything is done: a mutation
// whose answer cannot be given must not have been carried out.
func checkCaps(op *graphql.OperationContext) error {
	for limit := range caps(op.Operation.SelectionSet, op.Variables) {
		if err := readstate.CheckCap(limit); err != nil {
			return err
		}
	}
	return nil
}

// caps are those that an operation gives, on whatever field.
func caps(selections ast.SelectionSet, variables map[string]any) iter.Seq[int] {
	return func(yield func(int) bool) { eachCap(selections, variables, yield) }
}

func eachCap(selections ast.SelectionSet, variables map[string]any, yield func(int) bool) (more bool) {
	for _, selection := range selections {
		more := true
		switch s := selection.(type) {
		case *ast.Field:
			if s.Arguments.ForName("cap") != nil {
				// What is no number is refused where the field's own arguments are read.
				if limit, err := graphql.UnmarshalInt(s.ArgumentMap(variables)["cap"]); err == nil {
					more = yield(limit)
				}
			}
			more = more && eachCap(s.SelectionSet, variables, yield)
		case *ast.InlineFragment:
			more = eachCap(s.SelectionSet, variables, yield)
		case *ast.FragmentSpread:
			more = eachCap(s.Definition.SelectionSet, variables, yield)
		}
		if !more {
			return false
		}
	}
	return true
}
