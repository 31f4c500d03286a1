package graph

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"tidemark/graph/feed"
	"tidemark/internal/live"
	"tidemark/internal/readstate"
)

// A live badge costs most where the executor writes it out: each field has a context of its own there, and some a
// goroutine. So what a subscription selects is laid out once, when it begins, and events are appended from the layout.
// That is for fields that values tell themselves; where anything has to be looked up, the executor does it.

// layout is how an object of type T is written: its members, in order.
type layout[T any] []member[T]

type member[T any] struct {
	key   string // the quoted alias, and a colon
	write func(to []byte, from T) []byte
}

func (l layout[T]) append(to []byte, from T) []byte {
	to = append(to, '{')
	for i, m := range l {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, m.key...)
		to = m.write(to, from)
	}
	return append(to, '}')
}

// layOut lays the fields of an object out that a selection asks for. It fails where write has none for one of them.
func layOut[T any](op *graphql.OperationContext, set ast.SelectionSet, object string, write func(graphql.CollectedField) func([]byte, T) []byte) (layout[T], bool) {
	fields := graphql.CollectFields(op, set, []string{object})
	l := make(layout[T], len(fields))
	for i, f := range fields {
		l[i].key = text(f.Alias) + ":"
		if f.Name == "__typename" {
			name := text(object)
			l[i].write = func(to []byte, _ T) []byte { return append(to, name...) }
		} else if l[i].write = write(f); l[i].write == nil {
			return nil, false
		}
	}
	return l, true
}

// maxEncoders bounds the encoders that are shared.
const maxEncoders = 250

// encoders are shared by all who ask for the same: an app's subscribers send one document.
type encoders struct {
	mu    sync.Mutex
	known map[*ast.Field]feed.Encoder[live.BadgeChange]
}

// badgeChange returns what writes the events of the badgeChanged that ctx is about, and nil where the executor has to.
func (e *encoders) badgeChange(ctx context.Context) feed.Encoder[live.BadgeChange] {
	op, field := graphql.GetOperationContext(ctx), graphql.GetFieldContext(ctx).Field
	if varies(op.Operation.SelectionSet, 1) {
		return newBadgeChangeEncoder(op, field)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	encode, known := e.known[field.Field]
	if !known {
		if len(e.known) >= maxEncoders || e.known == nil {
			e.known = make(map[*ast.Field]feed.Encoder[live.BadgeChange])
		}
		encode = newBadgeChangeEncoder(op, field)
		e.known[field.Field] = encode
	}
	return encode
}

// varies reports whether variables decide what is selected, or how. The arguments of the root itself do not.
func varies(set ast.SelectionSet, depth int) bool {
	return slices.ContainsFunc(set, func(selection ast.Selection) bool {
		switch s := selection.(type) {
		case *ast.Field:
			return variable(s.Directives) || depth > 1 && slices.ContainsFunc(s.Arguments, variableArgument) || varies(s.SelectionSet, depth+1)
		case *ast.InlineFragment:
			return variable(s.Directives) || varies(s.SelectionSet, depth)
		case *ast.FragmentSpread:
			return variable(s.Directives) || varies(s.Definition.SelectionSet, depth)
		}
		return true
	})
}

func variable(directives ast.DirectiveList) bool {
	return slices.ContainsFunc(directives, func(d *ast.Directive) bool { return slices.ContainsFunc(d.Arguments, variableArgument) })
}

func variableArgument(argument *ast.Argument) bool { return argument.Value.Kind == ast.Variable }

func newBadgeChangeEncoder(op *graphql.OperationContext, field graphql.CollectedField) feed.Encoder[live.BadgeChange] {
	// The executor's own context would keep what is collected, for as long as the subscription lasts.
	op = &graphql.OperationContext{Doc: op.Doc, Variables: op.Variables}
	change, ok := layOutBadgeChange(op, field.Selections)
	if !ok {
		return nil
	}
	begin := "{" + text(field.Alias) + ":"
	return func(value live.BadgeChange) []byte {
		data := make([]byte, 0, len(begin)+256*(1+len(value.Badges)))
		return append(change.append(append(data, begin...), &value), '}')
	}
}

func layOutBadgeChange(op *graphql.OperationContext, set ast.SelectionSet) (layout[*live.BadgeChange], bool) {
	return layOut(op, set, "BadgeChange", func(f graphql.CollectedField) func([]byte, *live.BadgeChange) []byte {
		switch f.Name {
		case "snapshot":
			return func(to []byte, c *live.BadgeChange) []byte { return strconv.AppendBool(to, c.Snapshot) }
		case "removedChannelIds":
			return func(to []byte, c *live.BadgeChange) []byte {
				return appendList(to, c.RemovedChannelIDs, appendID)
			}
		case "storeEpoch":
			return func(to []byte, c *live.BadgeChange) []byte { return appendText(to, c.StoreEpoch) }
		case "badges":
			if badge, ok := layOutBadge(op, f.Selections); ok {
				return func(to []byte, c *live.BadgeChange) []byte {
					return appendList(to, c.Badges, func(to []byte, b readstate.Badge) []byte { return badge.append(to, &b) })
				}
			}
		case "total":
			if total, ok := layOutTotal(op, f.Selections); ok {
				return func(to []byte, c *live.BadgeChange) []byte { return total.append(to, &c.Total) }
			}
		}
		return nil
	})
}

func layOutBadge(op *graphql.OperationContext, set ast.SelectionSet) (layout[*readstate.Badge], bool) {
	return layOut(op, set, "Badge", func(f graphql.CollectedField) func([]byte, *readstate.Badge) []byte {
		switch f.Name {
		case "id":
			return func(to []byte, b *readstate.Badge) []byte {
				to = strconv.AppendInt(append(to, '"'), int64(b.UserID), 10)
				to = strconv.AppendInt(append(to, ':'), int64(b.ChannelID), 10)
				return append(to, '"')
			}
		case "version":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.Version()) }
		case "highWaterSeq":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.HighWaterSeq) }
		case "lastReadSeq":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.LastReadSeq) }
		case "readEpoch":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.ReadEpoch) }
		case "unreadUpperBound":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.UnreadUpperBound()) }
		case "muted":
			return func(to []byte, b *readstate.Badge) []byte { return strconv.AppendBool(to, b.Muted) }
		case "unread":
			return layOutCount(op, f, (*readstate.Badge).Unread)
		case "mentions":
			return layOutCount(op, f, (*readstate.Badge).Mentions)
		case "channel":
			if channel, ok := layOutChannel(op, f.Selections); ok {
				return func(to []byte, b *readstate.Badge) []byte { return channel.append(to, b) }
			}
		}
		return nil
	})
}

// layOutChannel lays out of a badge's channel what the badge tells itself.
func layOutChannel(op *graphql.OperationContext, set ast.SelectionSet) (layout[*readstate.Badge], bool) {
	return layOut(op, set, "Channel", func(f graphql.CollectedField) func([]byte, *readstate.Badge) []byte {
		switch f.Name {
		case "id":
			return func(to []byte, b *readstate.Badge) []byte { return appendID(to, b.ChannelID) }
		case "highWaterSeq":
			return func(to []byte, b *readstate.Badge) []byte { return appendInt(to, b.HighWaterSeq) }
		}
		return nil
	})
}

func layOutTotal(op *graphql.OperationContext, set ast.SelectionSet) (layout[*readstate.Total], bool) {
	return layOut(op, set, "BadgeTotal", func(f graphql.CollectedField) func([]byte, *readstate.Total) []byte {
		switch f.Name {
		case "unread":
			return layOutCount(op, f, (*readstate.Total).Unread)
		case "mentions":
			return layOutCount(op, f, (*readstate.Total).Mentions)
		case "unreadChannels":
			return func(to []byte, t *readstate.Total) []byte { return appendInt(to, t.UnreadChannels) }
		}
		return nil
	})
}

// layOutCount lays out a count to the cap that its field asks for.
func layOutCount[T any](op *graphql.OperationContext, field graphql.CollectedField, count func(T, int) (readstate.Count, error)) func([]byte, T) []byte {
	limit, err := graphql.UnmarshalInt(field.ArgumentMap(op.Variables)["cap"])
	if err != nil || readstate.CheckCap(limit) != nil {
		return nil
	}
	counted, ok := layOut(op, field.Selections, "UnreadCount", func(f graphql.CollectedField) func([]byte, readstate.Count) []byte {
		switch f.Name {
		case "count":
			return func(to []byte, c readstate.Count) []byte { return appendInt(to, c.Count) }
		case "capped":
			return func(to []byte, c readstate.Count) []byte { return strconv.AppendBool(to, c.Capped) }
		case "label":
			return func(to []byte, c readstate.Count) []byte { return appendText(to, c.Label()) }
		}
		return nil
	})
	if !ok {
		return nil
	}
	return func(to []byte, from T) []byte {
		n, _ := count(from, limit) // its one error is a cap out of bounds
		return counted.append(to, n)
	}
}

func appendList[T any](to []byte, list []T, entry func([]byte, T) []byte) []byte {
	to = append(to, '[')
	for i, e := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = entry(to, e)
	}
	return append(to, ']')
}

func appendID[T ~int64](to []byte, number T) []byte {
	return append(strconv.AppendInt(append(to, '"'), int64(number), 10), '"')
}

func appendInt[T ~int | ~int64](to []byte, number T) []byte {
	return strconv.AppendInt(to, int64(number), 10)
}

// appendText appends a string as JSON. Most have nothing to escape.
func appendText(to []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return append(to, text(s)...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}

// text is a string as JSON, as the executor writes it.
func text(s string) string {
	var quoted bytes.Buffer
	graphql.MarshalString(s).MarshalGQL(&quoted)
	return quoted.String()
}
