package delivery

import "tidemark/internal/id"

// State is where a channel stands for a person, and what is on record of one of their devices. The record's fields
// are nil where there is none.
type State struct {
	ChannelID        id.Channel
	JoinedSeq        id.Seq
	HighWaterSeq     id.Seq
	Version          id.Seq
	DeletedVersion   id.Seq // the version of the newest deletion
	DeliveredSeq     *id.Seq
	DeliveredVersion *id.Seq
}

// cursor is what a device holds, as far as anybody knows.
type cursor struct {
	known   bool
	said    id.Seq // the seq that the device or its record says
	seq     id.Seq // the same, but not before joining
	version id.Seq // it has heard of deletions up to here
}

// Stretch is a part (After, UpTo] of a channel's messages, and a version after which deletions count.
type Stretch struct {
	ChannelID id.Channel
	After     id.Seq
	UpTo      id.Seq
	Since     id.Seq
}

// merge puts together what a device says and what is on record: what it says wins. The record's version is worth
// something only where the device holds at least what the record says: one restored from a backup lost what it had
// heard of deletions, too, and is told of all of them.
func (s State) merge(held Held) cursor {
	var c cursor
	recorded := s.DeliveredSeq != nil && s.DeliveredVersion != nil
	switch {
	case held.After != nil:
		c.known, c.said = true, *held.After
	case recorded:
		c.known, c.said = true, *s.DeliveredSeq
	}
	switch {
	case held.SinceVersion != nil:
		c.version = *held.SinceVersion
	case recorded && c.said >= *s.DeliveredSeq:
		c.version = *s.DeliveredVersion
	}
	c.seq = max(c.said, s.JoinedSeq)
	return c
}

// resync says why the cursor is not good for a diff; it is empty where it is.
func (c cursor) resync(s State, maxGap id.Seq) Reason {
	switch {
	case !c.known:
		return NewDevice
	case c.said > s.HighWaterSeq || c.version > s.Version:
		return CursorAhead
	case s.HighWaterSeq-c.seq > maxGap:
		return GapTooLarge
	default:
		return ""
	}
}

// mayLackDeletions reports whether something was deleted since, perhaps of what the device holds.
func (c cursor) mayLackDeletions(s State) bool {
	return s.DeletedVersion > c.version && c.seq > s.JoinedSeq
}

// stretch is what the device holds and may see, and how far it has heard of deletions in it.
func (c cursor) stretch(s State) Stretch {
	return Stretch{ChannelID: s.ChannelID, After: s.JoinedSeq, UpTo: c.seq, Since: c.version}
}
