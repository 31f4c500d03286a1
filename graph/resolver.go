package graph

import (
	"context"

	"tidemark/graph/generated"
	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
)

// Resolver answers each field of the schema by one call of the domain.
type Resolver struct {
	ReadStates ReadStates
	Channels   Channels
	Deliveries Deliveries
	People     People
	Live       Live
	Arrivals   NewlyUnread
	Receipts   Receipts
	Inspector  Inspector

	encoders encoders
}

var _ generated.ResolverRoot = (*Resolver)(nil)

// ReadStates is what the edge needs of package readstate.
type ReadStates interface {
	List(ctx context.Context, user id.User, filter readstate.Filter) (readstate.Page, error)
	Total(ctx context.Context, user id.User, limit int) (readstate.Total, error)
	MarkRead(ctx context.Context, user id.User, device id.Device, cursor readstate.Cursor, limit int) (readstate.Result, error)
	MarkManyRead(ctx context.Context, user id.User, device id.Device, cursors []readstate.Cursor, limit int) ([]readstate.Result, error)
	MarkUnread(ctx context.Context, user id.User, channel id.Channel, seq id.Seq, epoch *int, limit int) (readstate.Result, error)
	SetMuted(ctx context.Context, user id.User, channel id.Channel, muted bool, limit int) (readstate.Badge, error)
}

// Channels is what the edge needs of package channel.
type Channels interface {
	Get(ctx context.Context, viewer person.Viewer, channel id.Channel) (channel.Channel, error)
	GetMany(ctx context.Context, viewer person.Viewer, channels []id.Channel) ([]channel.Channel, error)
	Members(ctx context.Context, channel id.Channel, first int, after id.User) (channel.MemberPage, error)
	Messages(ctx context.Context, viewer person.Viewer, channel channel.Channel, before *id.Seq, last int) ([]channel.Message, error)
	Send(ctx context.Context, viewer person.Viewer, draft channel.Draft, limit int) (channel.Sent, error)
	Delete(ctx context.Context, viewer person.Viewer, channel id.Channel, seq id.Seq) (channel.Message, error)
	Create(ctx context.Context, viewer person.Viewer, channel channel.New) (channel.Channel, error)
	AddMembers(ctx context.Context, viewer person.Viewer, channel id.Channel, users []id.User) (channel.Channel, error)
	RemoveMember(ctx context.Context, viewer person.Viewer, channel id.Channel, user id.User) (*channel.Channel, error)
}

// Deliveries is what the edge needs of package delivery.
type Deliveries interface {
	Sync(ctx context.Context, user id.User, req delivery.Request) (delivery.Sync, error)
	SyncDevice(ctx context.Context, user id.User, req delivery.DeviceRequest) (delivery.ActionPage, error)
	Confirm(ctx context.Context, user id.User, device id.Device, storeEpoch *string, cursors []delivery.Confirmed) ([]delivery.Recorded, error)
	Forget(ctx context.Context, user id.User, device id.Device) (bool, error)
}

// Live is what the edge needs of package live.
type Live interface {
	Badges(ctx context.Context, user id.User, watch live.Watch) (*live.BadgeStream, error)
	Events(ctx context.Context, user id.User, channel id.Channel, from delivery.Held) (*live.EventStream, error)
	Icon(ctx context.Context, user id.User, viewing bool) (*live.IconStream, error)
	Receipt(ctx context.Context, user id.User, channel id.Channel, seq id.Seq) (*live.ReceiptStream, error)
}

// Receipts is what the edge needs of package receipt.
type Receipts interface {
	Get(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq) (receipt.Receipt, error)
	List(ctx context.Context, viewer id.User, of receipt.Receipt, part receipt.Part, first int, after id.User) (receipt.Page, error)
	SetSharing(ctx context.Context, user id.User, share bool) error
	Sharing(ctx context.Context, user id.User) (bool, error)
}

// NewlyUnread is what the edge needs of package newlyunread.
type NewlyUnread interface {
	Get(ctx context.Context, user id.User, first int) (newlyunread.Shown, error)
	Acknowledge(ctx context.Context, user id.User, asOf *newlyunread.Position, first int) (newlyunread.Shown, error)
}

// Inspector is what the edge needs of package inspect.
type Inspector interface {
	Explain(ctx context.Context, viewer person.Viewer, user id.User, channel id.Channel, countTo int) (inspect.Explanation, error)
	Find(ctx context.Context, viewer person.Viewer, text string, first int) ([]person.Person, error)
	Inspect(ctx context.Context, viewer person.Viewer, user id.User, first int, after id.Channel, countTo int) (inspect.Inspection, error)
	Watch(ctx context.Context, viewer person.Viewer, user id.User) (*inspect.Stream, error)
}

// People is what the edge needs of package person.
type People interface {
	Get(ctx context.Context, user id.User) (person.Person, error)
	GetMany(ctx context.Context, users []id.User) (map[id.User]person.Person, error)
}
