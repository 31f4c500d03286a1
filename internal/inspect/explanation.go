package inspect

import (
	"fmt"
	"strings"
	"time"

	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// Move is what moved a cursor.
type Move string

// The moves.
const (
	Joined     Move = "JOINED"
	MarkRead   Move = "MARK_READ"
	MarkUnread Move = "MARK_UNREAD"
	Sent       Move = "SENT"
)

// Explanation is all that a badge is made of, at one moment.
type Explanation struct {
	readstate.Badge

	ChannelName string // as the person sees it
	// ReceiptSeq is the furthest that the person has ever read.
	ReceiptSeq id.Seq
	// DeletedInGap and OwnInGap are the messages after the cursor that do not count: what was deleted, and of what was
	// not, the person's own.
	DeletedInGap int
	OwnInGap     int

	LastMovedAt         time.Time
	LastMovedBy         Move
	LastMovedByDeviceID *id.Device // nil where the call named none
	// Devices are those that have confirmed something of the channel, the last one first.
	Devices []delivery.Recorded
}

// Summary is the subtraction in one sentence, said to the person whose badge it is.
func (e Explanation) Summary() string {
	var s strings.Builder
	unread := readstate.CountTo(e.Countable, readstate.DefaultCap)
	fmt.Fprintf(&s, "Your badge for %s says %s: ", e.ChannelName, unread.Label())
	switch gap := e.UnreadUpperBound(); {
	case e.HighWaterSeq == 0:
		s.WriteString("there is no message in it yet")
	case gap == 0:
		fmt.Fprintf(&s, "its newest message is number %d, and you have read up to it", e.HighWaterSeq)
	default:
		fmt.Fprintf(&s, "its newest message is number %d and you have read up to %d, which leaves %d", e.HighWaterSeq, e.LastReadSeq, gap)
		s.WriteString(e.without())
	}
	s.WriteString("; " + e.moved())
	if e.Muted {
		s.WriteString("; you have muted it, so that it is in no total")
	}
	s.WriteString(".")
	return s.String()
}

// without tells what in the gap does not count.
func (e Explanation) without() string {
	var parts []string
	if e.DeletedInGap > 0 {
		parts = append(parts, fmt.Sprintf("%d deleted", e.DeletedInGap))
	}
	if e.OwnInGap > 0 {
		parts = append(parts, fmt.Sprintf("%d of your own", e.OwnInGap))
	}
	if parts == nil {
		return ""
	}
	return ", less " + strings.Join(parts, " and ")
}

// moved tells what moved the cursor last.
func (e Explanation) moved() string {
	how := map[Move]string{
		Joined:     "you have been there since you joined",
		MarkRead:   "you got there by reading",
		MarkUnread: "you got there by marking messages unread",
		Sent:       "you got there by sending a message",
	}[e.LastMovedBy]
	if e.LastMovedByDeviceID != nil {
		how += fmt.Sprintf(" on the device %q", string(*e.LastMovedByDeviceID))
	}
	return how + e.LastMovedAt.UTC().Format(" on 2 January 2006 at 15:04:05 UTC")
}
