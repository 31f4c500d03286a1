// Package scalar says how the domain's typed ids, seqs and times are written on the wire and read from it. What
// cannot be read is a fault that names the argument.
package scalar

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

// MarshalChannelID writes a channel's id as a decimal string.
func MarshalChannelID(c id.Channel) graphql.ContextMarshaler { return quoted(int64(c)) }

// UnmarshalChannelID reads a channel's id.
func UnmarshalChannelID(ctx context.Context, v any) (id.Channel, error) {
	return readID(ctx, v, id.ParseChannel)
}

// MarshalUserID writes a person's id as a decimal string.
func MarshalUserID(u id.User) graphql.ContextMarshaler { return quoted(int64(u)) }

// UnmarshalUserID reads a person's id.
func UnmarshalUserID(ctx context.Context, v any) (id.User, error) {
	return readID(ctx, v, id.ParseUser)
}

// MarshalMessageID writes a message's id as a decimal string.
func MarshalMessageID(m id.Message) graphql.ContextMarshaler { return quoted(int64(m)) }

// UnmarshalMessageID reads a message's id.
func UnmarshalMessageID(ctx context.Context, v any) (id.Message, error) {
	return readID(ctx, v, id.ParseMessage)
}

// MarshalDeviceID writes a device's id.
func MarshalDeviceID(d id.Device) graphql.ContextMarshaler {
	return plain(func(w io.Writer) { graphql.MarshalString(string(d)).MarshalGQL(w) })
}

// UnmarshalDeviceID reads a device's id. Its length is the domain's affair.
func UnmarshalDeviceID(ctx context.Context, v any) (id.Device, error) {
	s, err := graphql.UnmarshalID(v)
	if err != nil || v == nil {
		return "", fault.BadInput(argument(ctx), "must be a string")
	}
	return id.Device(s), nil
}

// MarshalInt writes a count.
func MarshalInt(n int) graphql.ContextMarshaler {
	return plain(func(w io.Writer) { _, _ = w.Write(strconv.AppendInt(nil, int64(n), 10)) })
}

// UnmarshalInt reads a whole number of the 32 bits that GraphQL's Int has.
func UnmarshalInt(ctx context.Context, v any) (int, error) {
	n, err := graphql.UnmarshalInt32(v)
	if err != nil {
		return 0, fault.BadInput(argument(ctx), "must be a whole number of 32 bits")
	}
	return int(n), nil
}

// MarshalSeq writes a seq as a number.
func MarshalSeq(s id.Seq) graphql.ContextMarshaler {
	return plain(func(w io.Writer) { _, _ = w.Write(strconv.AppendInt(nil, int64(s), 10)) })
}

// UnmarshalSeq reads a seq. Only a whole number within the bounds is one: no string, and no fraction.
func UnmarshalSeq(ctx context.Context, v any) (id.Seq, error) {
	var n int64
	var err error
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case json.Number:
		n, err = strconv.ParseInt(v.String(), 10, 64)
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || n < 0 || n > int64(id.MaxSeq) {
		return 0, fault.BadInput(argument(ctx), "must be a whole number from 0 to %d", id.MaxSeq)
	}
	return id.Seq(n), nil
}

// MarshalTime writes an instant in UTC, and null for none.
func MarshalTime(t time.Time) graphql.ContextMarshaler {
	return plain(func(w io.Writer) { graphql.MarshalTime(t.UTC()).MarshalGQL(w) })
}

// UnmarshalTime reads an instant.
func UnmarshalTime(ctx context.Context, v any) (time.Time, error) {
	t, err := graphql.UnmarshalTime(v)
	if err != nil {
		return time.Time{}, fault.BadInput(argument(ctx), "must be an instant of RFC 3339")
	}
	return t.UTC(), nil
}

// WrongID refuses an argument that is no id.
func WrongID(argument string) error {
	return fault.BadInput(argument, "must be the decimal form of a whole number from 1 to %d", int64(math.MaxInt64))
}

func readID[T any](ctx context.Context, v any, parse func(string) (T, error)) (T, error) {
	if v == nil { // where the schema lets it be left out
		var none T
		return none, nil
	}
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case int, int64, json.Number:
		text = fmt.Sprint(v)
	}
	read, err := parse(text)
	if err != nil {
		return read, WrongID(argument(ctx))
	}
	return read, nil
}

// argument names what is being read as a caller would: input.memberIds[3].
func argument(ctx context.Context) string {
	var steps []string
	for at := graphql.GetPathContext(ctx); at != nil; at = at.Parent {
		switch {
		case at.Index != nil:
			steps = append(steps, "["+strconv.Itoa(*at.Index)+"]")
		case at.Field != nil:
			steps = append(steps, "."+*at.Field)
		}
	}
	var name strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		name.WriteString(steps[i])
	}
	return strings.TrimPrefix(name.String(), ".")
}

// plain is a value whose writing needs no context.
type plain func(io.Writer)

// MarshalGQLContext implements graphql.ContextMarshaler.
func (p plain) MarshalGQLContext(_ context.Context, w io.Writer) error {
	p(w)
	return nil
}

func quoted(n int64) plain {
	return func(w io.Writer) {
		text := strconv.AppendInt([]byte{'"'}, n, 10)
		_, _ = w.Write(append(text, '"'))
	}
}

// MarshalPosition writes a position in a form that nobody counts with.
func MarshalPosition(p newlyunread.Position) graphql.ContextMarshaler {
	text := base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, int64(p), 10))
	return plain(func(w io.Writer) { graphql.MarshalString(text).MarshalGQL(w) })
}

// UnmarshalPosition reads a position that was given out, or one that could have been.
func UnmarshalPosition(ctx context.Context, v any) (newlyunread.Position, error) {
	text, _ := v.(string)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, wrongPosition(ctx)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != string(raw) {
		return 0, wrongPosition(ctx)
	}
	return newlyunread.Position(n), nil
}

func wrongPosition(ctx context.Context) error {
	return fault.BadInput(argument(ctx), "must be a position as newlyUnread gave it")
}
