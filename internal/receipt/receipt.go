package receipt

import (
	"context"
	"fmt"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

// MaxPage bounds the people of one page.
const MaxPage = 500

// Receipt is how many have read a message, as one person sees it.
type Receipt struct {
	ChannelID     id.Channel
	Seq           id.Seq
	ReadCount     int
	AudienceCount int
}

// AllRead reports whether everybody has read it, and there is somebody.
func (r Receipt) AllRead() bool { return r.AudienceCount > 0 && r.ReadCount == r.AudienceCount }

// Part is one of the two parts of an audience.
type Part bool

// The parts.
const (
	Unread  Part = false // those who have yet to read
	Readers Part = true
)

// Page is a part of an audience's list, in the order of ids.
type Page struct {
	People  []person.Person
	HasNext bool
}

// Sight is what somebody may see of a message's receipt.
type Sight int

// The sights.
const (
	Outside Sight = iota // they are not in the channel
	Unaware              // there is no such message, or it is from before they joined
	Blind                // they do not share receipts, and so see nobody's
	Full
)

// Fault is the answer to somebody of that sight, and nil to those who get one.
func (s Sight) Fault() error {
	switch s {
	case Outside:
		return fault.NoChannel()
	case Unaware:
		return fault.NoMessage()
	default:
		return nil
	}
}

// Watched is all that it takes to follow a message's receipt.
type Watched struct {
	AudienceCount int
	// Unread are those of the audience who have yet to read.
	Unread Bitmap
	// Sights are those of the viewers asked about, without those outside.
	Sights map[id.User]Sight
}

// Store keeps watermarks. Its errors are faults, or internal. A channel that the viewer is not in, and a message that they
// may not know of, is NOT_FOUND.
type Store interface {
	// Receipt counts a message's audience and its readers, of one moment. To who does not share receipts both are none.
	Receipt(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq) (Receipt, error)
	// Audience returns at most limit people of a part of the audience with larger ids than after, in the order of their
	// ids. It returns nobody to who may not know.
	Audience(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq, part Part, after id.User, limit int) ([]person.Person, error)
	// Watch returns where a message stands, of one moment. No viewer is a fault.
	Watch(ctx context.Context, channel id.Channel, seq id.Seq, viewers []id.User) (Watched, error)
	// SetSharing has a person share receipts or not, in all of their channels at once, and returns these.
	SetSharing(ctx context.Context, user id.User, share bool) ([]id.Channel, error)
	// Sharing reports whether a person shares receipts. Who is unknown does.
	Sharing(ctx context.Context, user id.User) (bool, error)
}

// Announcer tells whoever listens what was committed. It neither waits nor fails: who misses something finds out in
// another way.
type Announcer interface {
	// SharingChanged says that a person's receipts in these channels are to be seen, or no more.
	SharingChanged(channels []id.Channel)
}

// Receipts answers for who has read what.
type Receipts struct {
	store     Store
	announcer Announcer
}

// New returns the receipts kept in store. The announcer hears of changes of sharing; nil: nobody does.
func New(store Store, announcer Announcer) *Receipts {
	return &Receipts{store: store, announcer: announcer}
}

// Get returns how many have read a message, as the viewer sees it.
func (r *Receipts) Get(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq) (Receipt, error) {
	if err := checkSeq(seq); err != nil {
		return Receipt{}, err
	}
	counted, err := r.store.Receipt(ctx, viewer, channel, seq)
	if err != nil {
		return Receipt{}, fmt.Errorf("read receipt: %w", err)
	}
	return counted, nil
}

// List returns a page of those who have read a message, or of those who have not.
func (r *Receipts) List(ctx context.Context, viewer id.User, of Receipt, part Part, first int, after id.User) (Page, error) {
	if err := fault.CheckRange("first", first, 1, MaxPage); err != nil {
		return Page{}, err
	}
	if of.AudienceCount == 0 { // nor is there anybody to list
		return Page{}, nil
	}
	people, err := r.store.Audience(ctx, viewer, of.ChannelID, of.Seq, part, after, first+1)
	if err != nil {
		return Page{}, fmt.Errorf("list an audience: %w", err)
	}
	return Page{People: people[:min(first, len(people))], HasNext: len(people) > first}, nil
}

// Watch returns all that it takes to follow a message's receipt for some viewers.
func (r *Receipts) Watch(ctx context.Context, channel id.Channel, seq id.Seq, viewers []id.User) (Watched, error) {
	if err := checkSeq(seq); err != nil {
		return Watched{}, err
	}
	watched, err := r.store.Watch(ctx, channel, seq, viewers)
	if err != nil {
		return Watched{}, fmt.Errorf("watch a receipt: %w", err)
	}
	return watched, nil
}

// SetSharing has a person share receipts or not. Who does not is seen by nobody, and sees nobody's.
func (r *Receipts) SetSharing(ctx context.Context, user id.User, share bool) error {
	channels, err := r.store.SetSharing(ctx, user, share)
	if err != nil {
		return fmt.Errorf("set receipt sharing: %w", err)
	}
	if r.announcer != nil && len(channels) > 0 { // also where nothing changed: that it did before may not have been told
		r.announcer.SharingChanged(channels)
	}
	return nil
}

// Sharing reports whether a person shares receipts.
func (r *Receipts) Sharing(ctx context.Context, user id.User) (bool, error) {
	share, err := r.store.Sharing(ctx, user)
	if err != nil {
		return false, fmt.Errorf("receipt sharing: %w", err)
	}
	return share, nil
}

func checkSeq(seq id.Seq) error { return fault.CheckRange("seq", seq, 0, id.MaxSeq) }
