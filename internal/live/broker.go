package live

import (
	"context"

	"tidemark/internal/id"
)

// Topic names what a publication is about. Processes receive the topics that they subscribe to.
type Topic string

// channelTopic is about a channel: its messages, deletions and changes of members.
func channelTopic(channel id.Channel) Topic { return Topic("channel:{" + channel.String() + "}") }

// userTopic is about one person: their cursors, mutes, and which channels they are in.
func userTopic(user id.User) Topic { return Topic("user:{" + user.String() + "}") }

// receiptsTopic is about how far a channel's members have read. Only those subscribe to it who watch a message there.
func receiptsTopic(channel id.Channel) Topic { return Topic("receipts:{" + channel.String() + "}") }

// Publication is what one process tells all others.
type Publication struct {
	Topic   Topic
	Payload []byte
}

// Broker carries publications between processes: each at most once, and in no order that could be relied on. A link
// to a server may be lost without a sign, so a broker proves its own by sending itself something at regular intervals.
type Broker interface {
	// Run keeps the link up until ctx ends, and hands what comes to receiver, one call at a time. It returns nil when
	// ctx has ended and nothing that it started runs any more. It is called once.
	Run(ctx context.Context, receiver Receiver) error
	// Subscribe returns nil once whatever is published on the topics from now on will be received, for as long as the
	// link holds. On an error, be it that the link is down or that ctx has ended, the topics are wanted all the same:
	// they are subscribed to as soon as the link is back.
	Subscribe(ctx context.Context, topics ...Topic) error
	// Unsubscribe ends what Subscribe began. It does not wait.
	Unsubscribe(topics ...Topic)
	// Publish hands publications over in their order. An error means that some of them may not have been.
	Publish(ctx context.Context, publications ...Publication) error
	// Up reports whether the link is proven to work.
	Up() bool
}

// Receiver is told what a broker's link brings.
type Receiver interface {
	// Received is one publication. The payload is the receiver's own.
	Received(publication Publication)
	// Resumed says that the link is up, with every topic that is wanted, after a time in which it was not or not
	// known to be: whatever was published meanwhile may be lost.
	Resumed()
}
