package delivery

import (
	"context"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/id"
)

// Store keeps what devices have received. Each method is one atomic step; its errors are faults, or internal.
type Store interface {
	// SyncState returns where a channel stands for a device, with the store epoch, and NOT_FOUND where the person is
	// not in the channel.
	SyncState(ctx context.Context, user id.User, device id.Device, channel id.Channel) (state State, storeEpoch string, err error)
	// SyncStates returns the same for at most limit channels with larger ids than after, in the order of their ids. It
	// notes that the device was heard of, if it is known.
	SyncStates(ctx context.Context, user id.User, device id.Device, after id.Channel, limit int) (states []State, storeEpoch string, err error)
	// ResetSyncState drops a device's record of one channel.
	ResetSyncState(ctx context.Context, user id.User, device id.Device, channel id.Channel) error
	// DeletedSeqs returns which messages of a stretch were deleted, at most limit.
	DeletedSeqs(ctx context.Context, stretch Stretch, limit int) ([]id.Seq, error)
	// CountDeletions counts the same for several channels, each to limit at most, in the order given.
	CountDeletions(ctx context.Context, stretches []Stretch, limit int) ([]int, error)
	// MessagesAfter returns the oldest messages with after < seq <= upTo, oldest first.
	MessagesAfter(ctx context.Context, channel id.Channel, after, upTo id.Seq, limit int) ([]channel.Message, error)
	// MessagesBefore returns the newest messages with after < seq < before, oldest first.
	MessagesBefore(ctx context.Context, channel id.Channel, after, before id.Seq, limit int) ([]channel.Message, error)
	// Confirm merges cursors into a device's record, the furthest of each channel, clamped to the head, all or none: it
	// is NOT_FOUND where the person is not in one of the channels, and CONFLICT where the store epoch is given and not
	// the store's. They come in ascending order, each channel once.
	Confirm(ctx context.Context, user id.User, device id.Device, storeEpoch *string, cursors []Confirmed) ([]Recorded, error)
	// ForgetDevice drops a device and its record, and reports whether it was known.
	ForgetDevice(ctx context.Context, user id.User, device id.Device) (bool, error)
	// ForgetUnseen drops at most limit devices last heard of before a time, and returns how many.
	ForgetUnseen(ctx context.Context, before time.Time, limit int) (int, error)
}
