package newlyunread

import (
	"context"
	"time"

	"tidemark/internal/id"
)

const (
	// MaxKept is how many senders a copy has at most, the newest: more than are counted. Redis keeps sets of up to 128
	// entries in one piece without pointers, in a seventh of the room; two of those are about the copy itself.
	MaxKept = 126
	// projectionTimeout is what a call may lose on a projection that does not answer, and projectionPause how long one that
	// failed is left alone.
	projectionTimeout, projectionPause = 100 * time.Millisecond, time.Second
)

// Generation names copies that are good together. A copy of another generation than the one that its partition is marked
// with may lack something.
type Generation struct {
	Store  string // the store epoch
	Number int64
}

// Snapshot is who wrote to a person since they acknowledged, as it was at one moment.
type Snapshot struct {
	Senders        []Sender // newest first
	AsOf           Position // all that arrived up to here is in it
	Acknowledged   Position // and nothing from up to here
	AcknowledgedAt *time.Time
	Generation     Generation // of a copy that is made of it
}

// Kept says what a projection has of a person.
type Kept uint8

const (
	// Cold is nothing that can be trusted.
	Cold Kept = iota
	// Warm is a copy that lacks nothing up to the position that it says.
	Warm
	// Unattended is nothing, with nobody there at the moment who would keep a copy right.
	Unattended
)

// Change is what happened to a person, for the copy that there may be.
type Change struct {
	User    id.User
	Arrived []Arrival // of that person
	// Acknowledged is up to where they have been shown everything: a copy that was made before that goes. Zero: nothing
	// happened of that kind.
	Acknowledged Position
}

// Mark says that the copies of a partition, as far as they are of a generation, lack nothing up to a position.
type Mark struct {
	Partition  Partition
	Generation Generation
	Position   Position
}

// Projection keeps copies of who wrote to people, for quick reads. It may lose any of them at any moment.
//
// A copy is made by a reader who finds none, in three steps: Begin leaves a note in its place, then the store is read, then
// Finish fills the copy in, if the note is still there. A worker applies what it has stored to notes and to copies alike. So
// whatever is stored after Begin comes by Apply, and whatever was before is in what the store answers.
//
// Only the newest position of each sender counts, and nothing up to the acknowledged one, so changes may be applied late,
// twice and in any order.
type Projection interface {
	// Server names the running server that has the copies, and is empty before that is known.
	Server() string
	// Read returns the copy of a person that was made of a store, with at most limit senders.
	Read(ctx context.Context, store string, user id.User, limit int) (Snapshot, Kept, error)
	// Begin leaves a note that a copy is being made, in place of whatever there is, and returns what names it.
	Begin(ctx context.Context, user id.User) (note string, err error)
	// Finish makes the copy, with the newest MaxKept senders. It does nothing where the note is gone.
	Finish(ctx context.Context, user id.User, note string, s Snapshot) error
	// Drop removes notes and copies, and returns how many there were.
	Drop(ctx context.Context, users []id.User) (dropped int, err error)
	// Apply works changes into the notes and copies that there are, and makes none.
	Apply(ctx context.Context, changes []Change) error
	// Mark notes up to where copies lack nothing, for a short time. Of two marks the one of the larger generation wins, and
	// then the one of the larger position.
	Mark(ctx context.Context, marks []Mark) error
}

// Check knows what need not be applied, from a replica of the projection that may be late.
type Check interface {
	// Redundant returns those of the changes that would change a count, or a latest message by recency or more. It is to be
	// asked after they were stored: it must not rely on what its copy was before. Where that cannot be told it returns all
	// of them, and sure is false.
	Redundant(ctx context.Context, p Partition, changes []Change, recency time.Duration) (needed []Change, sure bool, err error)
}
