package readstate

import (
	"strconv"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// MaxCap bounds how far a caller may ask to have messages counted one by one.
const MaxCap = 10_000

// DefaultCap is where counts end that people look at: a badge says 99+.
const DefaultCap = 99

// Badge is what one person has unread in one channel, at one version. It is absolute, never a difference.
type Badge struct {
	UserID    id.User
	ChannelID id.Channel
	// HeadVersion and StateVersion are those of the two rows that the badge is made of; see Version.
	HeadVersion  id.Seq
	StateVersion id.Seq
	HighWaterSeq id.Seq
	LastReadSeq  id.Seq
	JoinedSeq    id.Seq
	ReadEpoch    int
	Muted        bool
	// Activity orders channels by their newest message. It says nothing about time.
	Activity int64
	// ReceiptSeq is the furthest message ever read, and MemberIndex names the person among all who were ever in the
	// channel: what others are told of reading, see package receipt.
	ReceiptSeq  id.Seq
	MemberIndex int
	// Countable is how many messages of others stand undeleted after the cursor, and Naming how many of those name
	// the person. Both are exact up to the cap that was asked for when the badge was read, and above it if larger.
	Countable int
	Naming    int
}

// ID names the badge among all badges, so that clients can keep them in a normalised cache.
func (b Badge) ID() string {
	return b.UserID.String() + ":" + b.ChannelID.String()
}

// Version orders the badges of one person and channel within one store epoch; see the package comment.
func (b Badge) Version() id.Seq { return b.HeadVersion + b.StateVersion }

// UnreadUpperBound is the subtraction alone: at least the true count.
func (b Badge) UnreadUpperBound() int {
	return int(max(0, b.HighWaterSeq-b.LastReadSeq))
}

// Unread is the exact count of messages of others after the cursor that are not deleted.
func (b Badge) Unread(cap int) (Count, error) { return count(b.Countable, cap) }

// Mentions is how many of the unread messages name the person.
func (b Badge) Mentions(cap int) (Count, error) { return count(b.Naming, cap) }

// Total is the sum over all of a person's channels that are not muted.
type Total struct {
	Countable      int
	Naming         int
	UnreadChannels int
}

// Unread is the exact number of unread messages.
func (t Total) Unread(cap int) (Count, error) { return count(t.Countable, cap) }

// Mentions is how many of the unread messages name the person.
func (t Total) Mentions(cap int) (Count, error) { return count(t.Naming, cap) }

// Shown is what a badge shows: both counts to the default cap.
func (t Total) Shown() (unread, mentions Count) {
	return CountTo(t.Countable, DefaultCap), CountTo(t.Naming, DefaultCap)
}

// Add counts a badge in.
func (t *Total) Add(b Badge) { t.add(b, 1) }

// Remove takes a badge out that was counted in.
func (t *Total) Remove(b Badge) { t.add(b, -1) }

func (t *Total) add(b Badge, sign int) {
	if b.Muted {
		return
	}
	t.Countable += sign * b.Countable
	t.Naming += sign * b.Naming
	if b.Countable > 0 {
		t.UnreadChannels += sign
	}
}

// Count is a number to show: at most the cap, and whether there are more.
type Count struct {
	Count  int
	Capped bool
}

// Label is what to draw: the number, or 99+.
func (c Count) Label() string {
	if c.Capped {
		return strconv.Itoa(c.Count) + "+"
	}
	return strconv.Itoa(c.Count)
}

func count(n, limit int) (Count, error) {
	if err := CheckCap(limit); err != nil {
		return Count{}, err
	}
	return CountTo(n, limit), nil
}

// CountTo is a number to show, at most limit.
func CountTo(n, limit int) Count {
	return Count{Count: min(n, limit), Capped: n > limit}
}

// CheckCap refuses a cap that nobody may ask for.
func CheckCap(limit int) error {
	return fault.CheckRange("cap", limit, 1, MaxCap)
}
