package newlyunread

import "tidemark/internal/id"

const (
	// partitions are those of recipients, and the relay's.
	partitions = recipientPartitions + 1
	// recipientPartitions are those of recipients, from 0.
	recipientPartitions = 64
	// relay is the partition of those who find out to whom messages count.
	relay Partition = -1
)

// Partition is a part of all recipients.
type Partition int16

// PartitionOf returns the part that a person is in: all groups of six bits of their id, by XOR, however ids are made. It
// says the same as arrival_partition in Postgres.
func PartitionOf(user id.User) Partition {
	var folded int64
	for shift := 0; shift < 64; shift += 6 {
		folded ^= int64(user) >> shift
	}
	return Partition(folded & (recipientPartitions - 1))
}
