package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/channel"
	"tidemark/internal/readstate"
)

// An operation's price is about the number of values that its answer may hold, and that it gives itself. Each field is
// one, and so is each value in its arguments. A list is what one of its entries is, as many times as it may have
// entries: as the nearest field around it asks for by first, last or limit, or as it was given in a list. On top come:
const (
	// lookupPrice is for a field that asks the store: the roots, and those that do so once for each object. It is set
	// so that a page of 500 channels cannot have even one message of each, and one of 100 can.
	lookupPrice = 100
	// countedPerUnit is how many messages are counted one by one, up to a cap, for one unit.
	countedPerUnit = 100
	// audiencePrice is for a look at who of a message's audience has read it: a large group's rows, one by one.
	audiencePrice = 100
	// explanationPrice is for a gap whose messages are counted one by one, without a cap.
	explanationPrice = 5000
	// devicesPerPerson is how many devices a person is taken to have, where each is told of.
	devicesPerPerson = 10
)

// unaffordable is where sums end, far from what would overflow.
const unaffordable = 1 << 31

// budget is the price that no operation's answer may pass. It goes after guard, which bounds what there is to
// compute, and after validation.
type budget int

var (
	_ graphql.HandlerExtension        = budget(0)
	_ graphql.OperationContextMutator = budget(0)
)

// ExtensionName implements graphql.HandlerExtension.
func (budget) ExtensionName() string { return "Budget" }

// Validate implements graphql.HandlerExtension.
func (budget) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext implements graphql.OperationContextMutator.
func (b budget) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	if price := priceOf(op.Operation.SelectionSet, 1, op.Variables); price > int(b) {
		return tooLarge("costs %d units, and %d is the limit: take smaller pages or fewer fields", price, b)
	}
	return nil
}

// priceOf adds up selections where a list has at most page entries.
func priceOf(set ast.SelectionSet, page int, variables map[string]any) int {
	var price int
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			price += fieldPrice(s, page, variables)
		case *ast.InlineFragment:
			price += priceOf(s.SelectionSet, page, variables)
		case *ast.FragmentSpread:
			price += priceOf(s.Definition.SelectionSet, page, variables)
		}
		price = min(price, unaffordable)
	}
	return price
}

func fieldPrice(field *ast.Field, page int, variables map[string]any) int {
	args := field.ArgumentMap(variables)
	page = pageOf(field.Definition, args, page)
	price := 1 + priceOf(field.SelectionSet, page, variables)
	if field.Definition.Type.Elem != nil {
		price *= page
	}
	price += valuesIn(args) - 1 // args itself is none
	if limit, err := graphql.UnmarshalInt(args["cap"]); err == nil && limit <= readstate.MaxCap {
		price += max(0, limit) / countedPerUnit
	}
	if !asksStore(field) {
		return price
	}
	price += lookupPrice
	switch field.Name {
	case "readReceipt", "receiptChanged", "readers", "unreadMembers":
		price += audiencePrice
	case "explainBadge":
		price += explanationPrice
	case "badges", "badgeTotal", "badgeChanged", "inspection":
		// They count in every channel of the person, whatever the page: let it be a hundred that have to be counted.
		for limit := range caps(field.SelectionSet, variables) {
			price += min(max(0, limit), readstate.MaxCap) / countedPerUnit * 100
		}
	}
	return price
}

// pageOf is how many entries a list at or below a field has at most. A size that is refused when the field is
// resolved leaves no list at all, so it is not to be multiplied with.
func pageOf(field *ast.FieldDefinition, args map[string]any, around int) int {
	for _, name := range []string{"first", "last", "limit"} {
		if size, given := args[name]; given {
			return sizeWithin(size, channel.MaxPage)
		}
	}
	if field.Name == "badgeChanged" { // the first event is all of a person's badges, or of those channels
		if only, given := args["channelIds"]; given && only != nil {
			return min(len(graphql.CoerceList(only)), channel.MaxPage)
		}
		return channel.MaxPage
	}
	if field.Type.Elem == nil {
		return around
	}
	if field.Name == "devices" {
		return devicesPerPerson
	}
	for _, arg := range field.Arguments {
		if arg.Type.Elem != nil {
			return sizeWithin(len(graphql.CoerceList(args[arg.Name])), readstate.MaxCursors)
		}
	}
	return around
}

func sizeWithin(size any, limit int) int {
	n, err := graphql.UnmarshalInt(size)
	if err != nil || n < 1 || n > limit {
		return 1
	}
	return n
}

func asksStore(field *ast.Field) bool {
	switch field.ObjectDefinition.Name {
	case "Query", "Mutation", "Subscription":
		return !isIntrospection(field)
	case "ReadReceipt":
		return field.Name == "readers" || field.Name == "unreadMembers"
	case "Channel":
		return field.Name == "members" || field.Name == "messages"
	case "Viewer":
		return field.Name == "badgeTotal" || field.Name == "displayName" || field.Name == "newlyUnreadCount" ||
			field.Name == "sharesReadReceipts"
	default:
		return false
	}
}
