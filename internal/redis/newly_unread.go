package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

const (
	// copyFor bounds how long a copy lives, and with it what nobody thought of.
	copyFor = 10 * time.Minute
	// noteFor is how long the making of one may take.
	noteFor = 10 * time.Second
)

var (
	//go:embed newly_unread_finish.lua
	finishScript string
	//go:embed newly_unread_apply.lua
	applyScript string
	//go:embed newly_unread_mark.lua
	markScript string
)

var _ newlyunread.Projection = (*NewlyUnread)(nil)

// NewlyUnread keeps copies of who wrote to people, a sorted set for each person: senders by the position of their latest
// message, and above them, at infinity, what the copy is. All of it is one key, so that it is lost as a whole.
type NewlyUnread struct {
	client              *Client
	rdb                 *goredis.Client
	finish, apply, mark *goredis.Script
}

// NewNewlyUnread returns the copies that are kept behind c.
func NewNewlyUnread(c *Client) *NewlyUnread {
	return &NewlyUnread{
		client: c, rdb: c.single,
		finish: goredis.NewScript(finishScript), apply: goredis.NewScript(applyScript), mark: goredis.NewScript(markScript),
	}
}

func newlyUnreadKey(user id.User) string { return "newly_unread:{" + user.String() + "}" }

func newlyUnreadMarkKey(p newlyunread.Partition) string {
	return "newly_unread_mark:{" + strconv.Itoa(int(p)) + "}"
}

// Server implements newlyunread.Projection.
func (n *NewlyUnread) Server() string { return n.client.serverID() }

// Read implements newlyunread.Projection. A key that is of another kind is as none. The mark is read first: what is applied after it is no harm.
func (n *NewlyUnread) Read(ctx context.Context, store string, user id.User, limit int) (newlyunread.Snapshot, newlyunread.Kept, error) {
	pipe := n.rdb.Pipeline()
	marked := pipe.Get(ctx, newlyUnreadMarkKey(newlyunread.PartitionOf(user)))
	set := pipe.ZRevRangeWithScores(ctx, newlyUnreadKey(user), 0, int64(limit)+1)
	_, _ = pipe.Exec(ctx) // each has its own error
	if err := cmp.Or(unexpected(set.Err()), unexpected(marked.Err())); err != nil {
		return newlyunread.Snapshot{}, newlyunread.Cold, fmt.Errorf("read who wrote to %s: %w", user, err)
	}
	m, ok := parseMark(marked.Val())
	if !ok || !strings.HasPrefix(m.generation, storeDigits(store)+":") || n.client.serverID() == "" {
		return newlyunread.Snapshot{}, newlyunread.Unattended, nil
	}
	s, ok := n.parse(set.Val(), m)
	if !ok {
		return newlyunread.Snapshot{}, newlyunread.Cold, nil
	}
	return s, newlyunread.Warm, nil
}

// unexpected leaves out what an answer may be.
func unexpected(err error) error {
	if errors.Is(err, goredis.Nil) || goredis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	return err
}

// mark is up to where the copies of a partition lack nothing.
type mark struct {
	generation string // with the store
	position   newlyunread.Position
}

func parseMark(text string) (m mark, ok bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return m, false
	}
	position, err := strconv.ParseInt(text[at+1:], 10, 64)
	return mark{text[:at], newlyunread.Position(position)}, err == nil
}

// parse reads a set from its top, if it can be trusted.
func (n *NewlyUnread) parse(set []goredis.Z, m mark) (s newlyunread.Snapshot, ok bool) {
	const top = 2
	if len(set) < top {
		return s, false
	}
	state, acknowledged := member(set[0]), member(set[1])
	made, warm := strings.CutPrefix(state, "warm:") // on which server, of what generation, up to where
	server, made, _ := strings.Cut(made, ":")
	trusted, good := strings.CutPrefix(made, m.generation+":")
	if !warm || server == "" || !strings.HasPrefix(n.client.serverID(), server) || !good {
		return s, false
	}
	position, err := strconv.ParseInt(trusted, 10, 64)
	if err != nil {
		return s, false
	}
	s.AsOf = max(m.position, newlyunread.Position(position))
	if s.Acknowledged, s.AcknowledgedAt, err = parseAcknowledged(acknowledged); err != nil {
		return s, false
	}
	s.Senders = make([]newlyunread.Sender, 0, len(set)-top)
	for _, z := range set[top:] {
		sender, err := id.ParseUser(member(z))
		if err != nil {
			return s, false
		}
		// Until a batch is marked, what it brought is there already: all of it for this person, and of the batches before.
		s.AsOf = max(s.AsOf, newlyunread.Position(z.Score))
		s.Senders = append(s.Senders, newlyunread.Sender{UserID: sender, LatestAt: newlyunread.Position(z.Score).Time()})
	}
	return s, true
}

func member(z goredis.Z) string {
	text, _ := z.Member.(string)
	return text
}

func parseAcknowledged(text string) (position newlyunread.Position, at *time.Time, err error) {
	var micros int64
	if _, err := fmt.Sscanf(text, "acknowledged:%d:%d", &position, &micros); err != nil {
		return 0, nil, err
	}
	if micros > 0 {
		at = new(time.UnixMicro(micros).UTC())
	}
	return position, at, nil
}

// Begin implements newlyunread.Projection.
func (n *NewlyUnread) Begin(ctx context.Context, user id.User) (string, error) {
	note, key := rand.Text(), newlyUnreadKey(user)
	pipe := n.rdb.TxPipeline()
	pipe.Del(ctx, key)
	pipe.ZAdd(ctx, key, goredis.Z{Score: math.Inf(1), Member: "warming:" + note})
	pipe.PExpire(ctx, key, noteFor)
	if _, err := pipe.Exec(ctx); err != nil {
		return "", fmt.Errorf("begin a copy of who wrote to %s: %w", user, err)
	}
	return note, nil
}

// Finish implements newlyunread.Projection.
func (n *NewlyUnread) Finish(ctx context.Context, user id.User, note string, s newlyunread.Snapshot) error {
	const first = 8
	senders := s.Senders[:min(len(s.Senders), newlyunread.MaxKept)]
	var at int64
	if s.AcknowledgedAt != nil {
		at = s.AcknowledgedAt.UnixMicro()
	}
	args := make([]any, first, first+2*len(senders))
	copy(args, []any{
		note, storeDigits(s.Generation.Store), s.Generation.Number, int64(s.AsOf), int64(s.Acknowledged), at, copyFor.Milliseconds(),
		newlyunread.MaxKept,
	})
	for _, sender := range senders {
		args = append(args, sender.LatestAt.UnixMicro(), int64(sender.UserID))
	}
	if err := n.finish.Run(ctx, n.rdb, []string{newlyUnreadKey(user)}, args...).Err(); err != nil {
		return fmt.Errorf("finish the copy of who wrote to %s: %w", user, err)
	}
	return nil
}

// Drop implements newlyunread.Projection.
func (n *NewlyUnread) Drop(ctx context.Context, users []id.User) (dropped int, err error) {
	pipe := n.rdb.Pipeline()
	gone := make([]*goredis.IntCmd, len(users))
	for i, user := range users {
		gone[i] = pipe.Unlink(ctx, newlyUnreadKey(user)) // one by one: in a cluster they are in different places
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("drop copies of who wrote: %w", err)
	}
	for _, g := range gone {
		dropped += int(g.Val())
	}
	return dropped, nil
}

// Apply implements newlyunread.Projection.
func (n *NewlyUnread) Apply(ctx context.Context, changes []newlyunread.Change) error {
	return runEach(ctx, n.rdb, "apply to copies of who wrote", n.apply, func(run func(key string, args ...any)) {
		for _, change := range changes {
			args := append(make([]any, 0, 2+2*len(change.Arrived)), newlyunread.MaxKept, int64(change.Acknowledged))
			for _, a := range change.Arrived {
				args = append(args, int64(a.Position), int64(a.Sender))
			}
			run(newlyUnreadKey(change.User), args...)
		}
	})
}

// Mark implements newlyunread.Projection.
func (n *NewlyUnread) Mark(ctx context.Context, marks []newlyunread.Mark) error {
	return runEach(ctx, n.rdb, "mark copies of who wrote", n.mark, func(run func(key string, args ...any)) {
		for _, m := range marks {
			run(newlyUnreadMarkKey(m.Partition), storeDigits(m.Generation.Store), m.Generation.Number, int64(m.Position),
				newlyunread.MarkFor.Milliseconds())
		}
	})
}

// Behind returns those of the partitions of marks whose copies may still lack something up to them, or are trusted by
// nobody.
func (n *NewlyUnread) Behind(ctx context.Context, marks []newlyunread.Mark) ([]newlyunread.Partition, error) {
	pipe := n.rdb.Pipeline()
	found := make([]*goredis.StringCmd, len(marks))
	for i, m := range marks {
		found[i] = pipe.Get(ctx, newlyUnreadMarkKey(m.Partition))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	var behind []newlyunread.Partition
	for i, m := range marks {
		if is, ok := parseMark(found[i].Val()); !ok || is.generation != generationText(m.Generation) || is.position < m.Position {
			behind = append(behind, m.Partition)
		}
	}
	return behind, nil
}

func generationText(g newlyunread.Generation) string {
	return storeDigits(g.Store) + ":" + strconv.FormatInt(g.Number, 10)
}

// storeDigits tells store epochs apart in little room: a copy's state must fit into a small set's 64 bytes.
func storeDigits(epoch string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(epoch)) // it never fails
	return strconv.FormatUint(1<<32|uint64(h.Sum32()), 16)[1:]
}
