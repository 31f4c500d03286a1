package main

import (
	"context"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/receipt"
)

// scheme is a way to know who has read what. Messages and members are by number, members from 0.
type scheme struct {
	name  string
	limit bool // its size is one that Tidemark promises
	make  func(ctx context.Context) error
	size  func(ctx context.Context) (bytes float64, err error) // for a message
	// read is what a mark read adds that passes some messages; of Tidemark's own, all of it.
	read  func(ctx context.Context, member, from, to int) error
	count func(ctx context.Context, seq int) (readers int, err error)
	lists func(ctx context.Context, seq int) error // the first of both
}

func (r *reading) allSchemes() []scheme {
	return []scheme{r.watermarks(), r.rows(), r.hash(), r.bitmap(), r.sortedSet(), r.inMemory()}
}

// watermarks is what Tidemark does: nothing is kept but how far each has read.
func (r *reading) watermarks() scheme {
	get := func(ctx context.Context, seq int) (receipt.Receipt, error) {
		return r.store.Receipt(ctx, receiptSender, receiptGroup, id.Seq(seq))
	}
	return scheme{
		name: "watermarks",
		make: func(context.Context) error { return nil },
		size: func(context.Context) (float64, error) { return 0, nil }, // a column of what is there for the badge
		read: func(ctx context.Context, member, _, to int) error { return r.advance(ctx, member, to) },
		count: func(ctx context.Context, seq int) (int, error) {
			counted, err := get(ctx, seq)
			return counted.ReadCount, err
		},
		lists: func(ctx context.Context, seq int) error {
			for _, part := range []receipt.Part{receipt.Readers, receipt.Unread} {
				if _, err := r.store.Audience(ctx, receiptSender, receiptGroup, id.Seq(seq), part, 0, receiptPage+1); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// rows is a row for each reader and message.
func (r *reading) rows() scheme {
	const unread = `
		SELECT rs.user_id FROM channel_read_state rs
		WHERE rs.channel_id = $1 AND rs.member AND rs.user_id <> $2
			AND NOT EXISTS (SELECT FROM receipts.row w WHERE w.seq = $3 AND w.user_id = rs.user_id)
		ORDER BY rs.user_id LIMIT $4`
	return scheme{
		name: "rows",
		make: func(ctx context.Context) error {
			for _, sql := range []string{
				"CREATE SCHEMA receipts",
				"CREATE TABLE receipts.row (seq bigint, user_id bigint, read_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (seq, user_id))",
				fmt.Sprintf(`INSERT INTO receipts.row (seq, user_id)
					SELECT n, rs.user_id FROM channel_read_state rs, generate_series(%d, %d) AS n
					WHERE rs.channel_id = %d AND rs.receipt_seq >= n AND rs.user_id <> %d ORDER BY n, random()`,
					r.head-r.kept+1, r.head, receiptGroup, receiptSender),
				"VACUUM (ANALYZE) receipts.row",
			} {
				if _, err := r.admin.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		},
		size: func(ctx context.Context) (bytes float64, err error) {
			err = r.admin.QueryRow(ctx, `SELECT pg_total_relation_size('receipts.row')::float8 / count(*) * count(*) FILTER (WHERE seq = $1)
				FROM receipts.row`, r.head).Scan(&bytes)
			return bytes, err
		},
		read: func(ctx context.Context, member, from, to int) error {
			_, err := r.pool.Exec(ctx, `INSERT INTO receipts.row (seq, user_id) SELECT n, $1 FROM generate_series($2::bigint, $3::bigint) AS n
				ON CONFLICT DO NOTHING`, firstMember+id.User(member), from, to)
			return err
		},
		count: func(ctx context.Context, seq int) (readers int, err error) {
			err = r.pool.QueryRow(ctx, "SELECT count(*) FROM receipts.row WHERE seq = $1", seq).Scan(&readers)
			return readers, err
		},
		lists: func(ctx context.Context, seq int) error {
			if _, err := r.pool.Exec(ctx, "SELECT user_id FROM receipts.row WHERE seq = $1 ORDER BY user_id LIMIT $2", seq, receiptPage+1); err != nil {
				return err
			}
			_, err := r.pool.Exec(ctx, unread, receiptGroup, receiptSender, seq, receiptPage+1)
			return err
		},
	}
}

// pipelined runs a command for each of some messages, in one round trip.
func (r *reading) pipelined(ctx context.Context, from, to int, command func(goredis.Pipeliner, int)) error {
	_, err := r.redis.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for seq := from; seq <= to; seq++ {
			command(p, seq)
		}
		return nil
	})
	return err
}

// fill has all readers of the kept messages, or of all, in Redis.
func (r *reading) fill(ctx context.Context, messages int, message func(p goredis.Pipeliner, seq int, readers []int)) error {
	for seq := r.head - messages + 1; seq <= r.head; seq++ {
		var readers []int
		for m := range r.members {
			if r.watermark(m) >= seq {
				readers = append(readers, m)
			}
		}
		if err := r.pipelined(ctx, seq, seq, func(p goredis.Pipeliner, seq int) { message(p, seq, readers) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) memory(ctx context.Context, key string) (float64, error) {
	bytes, err := r.redis.MemoryUsage(ctx, key, 0).Result()
	return float64(bytes), err
}

// membersOf returns people by their indexes in the channel: what a list needs of a scheme that has only those.
func (r *reading) membersOf(ctx context.Context, indexes []int32) error {
	_, err := r.pool.Exec(ctx, "SELECT user_id FROM channel_read_state WHERE channel_id = $1 AND member_index = ANY($2) ORDER BY member_index",
		receiptGroup, indexes)
	return err
}

// hash is a Redis hash for each message: a field for each reader.
func (r *reading) hash() scheme {
	key := func(seq int) string { return "hash:" + strconv.Itoa(seq) }
	field := func(member int) string { return (firstMember + id.User(member)).String() }
	const readAt = 1_700_000_000
	return scheme{
		name: "Redis hash",
		make: func(ctx context.Context) error {
			return r.fill(ctx, r.kept, func(p goredis.Pipeliner, seq int, readers []int) {
				fields := make([]any, 0, 2*len(readers))
				for _, m := range readers {
					fields = append(fields, field(m), readAt+m)
				}
				p.HSet(ctx, key(seq), fields...)
			})
		},
		size: func(ctx context.Context) (float64, error) { return r.memory(ctx, key(r.head)) },
		read: func(ctx context.Context, member, from, to int) error {
			return r.pipelined(ctx, from, to, func(p goredis.Pipeliner, seq int) { p.HSet(ctx, key(seq), field(member), readAt) })
		},
		count: func(ctx context.Context, seq int) (int, error) {
			n, err := r.redis.HLen(ctx, key(seq)).Result()
			return int(n), err
		},
		lists: func(ctx context.Context, seq int) error { // neither is ordered: who has not read is who is not among all
			if err := r.redis.HKeys(ctx, key(seq)).Err(); err != nil {
				return err
			}
			_, err := r.pool.Exec(ctx, "SELECT user_id FROM channel_read_state WHERE channel_id = $1 AND member ORDER BY user_id", receiptGroup)
			return err
		},
	}
}

// bitmap is a Redis bitmap for each message, all of them warm.
func (r *reading) bitmap() scheme {
	key := func(seq int) string { return "bitmap:" + strconv.Itoa(seq) }
	first := func(ctx context.Context, seq int) (read, unread []int32, err error) {
		bits, err := r.redis.Get(ctx, key(seq)).Bytes()
		for i := 1; i <= r.members && (len(read) <= receiptPage || len(unread) <= receiptPage); i++ {
			if i/8 < len(bits) && bits[i/8]&(0x80>>(i%8)) != 0 {
				read = append(read, int32(i))
			} else {
				unread = append(unread, int32(i))
			}
		}
		return read, unread, err
	}
	return scheme{
		name: "Redis bitmap",
		make: func(ctx context.Context) error {
			return r.fill(ctx, r.kept, func(p goredis.Pipeliner, seq int, readers []int) {
				bits := make([]byte, r.members/8+1)
				for _, m := range readers {
					bits[(m+1)/8] |= 0x80 >> ((m + 1) % 8)
				}
				p.Set(ctx, key(seq), bits, 0)
			})
		},
		size: func(ctx context.Context) (float64, error) { return r.memory(ctx, key(r.head)) },
		read: func(ctx context.Context, member, from, to int) error {
			return r.pipelined(ctx, from, to, func(p goredis.Pipeliner, seq int) { p.SetBit(ctx, key(seq), int64(member)+1, 1) })
		},
		count: func(ctx context.Context, seq int) (int, error) {
			n, err := r.redis.BitCount(ctx, key(seq), nil).Result()
			return int(n), err
		},
		lists: func(ctx context.Context, seq int) error {
			read, unread, err := first(ctx, seq)
			if err != nil {
				return err
			}
			if err := r.membersOf(ctx, read[:min(len(read), receiptPage+1)]); err != nil {
				return err
			}
			return r.membersOf(ctx, unread[:min(len(unread), receiptPage+1)])
		},
	}
}

// sortedSet is all watermarks of a channel in a sorted set of Redis.
func (r *reading) sortedSet() scheme {
	const key = "watermarks"
	member := func(m int) string { return (firstMember + id.User(m)).String() }
	return scheme{
		name: "Redis sorted set",
		make: func(ctx context.Context) error {
			all := make([]goredis.Z, r.members)
			for m := range all {
				all[m] = goredis.Z{Score: float64(r.watermark(m)), Member: member(m)}
			}
			return r.redis.ZAdd(ctx, key, all...).Err()
		},
		size: func(ctx context.Context) (float64, error) {
			bytes, err := r.memory(ctx, key)
			return bytes / float64(r.head), err
		},
		read: func(ctx context.Context, m, _, to int) error {
			return r.redis.ZAddGT(ctx, key, goredis.Z{Score: float64(to), Member: member(m)}).Err()
		},
		count: func(ctx context.Context, seq int) (int, error) {
			n, err := r.redis.ZCount(ctx, key, strconv.Itoa(seq), "+inf").Result()
			return int(n), err
		},
		lists: func(ctx context.Context, seq int) error {
			readers := goredis.ZRangeArgs{Key: key, Start: strconv.Itoa(seq), Stop: "+inf", ByScore: true, Count: receiptPage + 1}
			if err := r.redis.ZRangeArgs(ctx, readers).Err(); err != nil {
				return err
			}
			unread := goredis.ZRangeArgs{Key: key, Start: "-inf", Stop: "(" + strconv.Itoa(seq), ByScore: true, Count: receiptPage + 1}
			return r.redis.ZRangeArgs(ctx, unread).Err()
		},
	}
}

// inMemory is what a process keeps of the messages that somebody watches there: here, of all that are read. Lists are not
// taken from it.
func (r *reading) inMemory() scheme {
	reach := 0
	for _, length := range passed() {
		reach += length
	}
	bitmaps := make(map[int]receipt.Bitmap)
	left := make(map[int]int)
	warm := func(seq int) receipt.Bitmap {
		if b, ok := bitmaps[seq]; ok {
			return b
		}
		var unread []int32
		for m := range r.members {
			if r.watermark(m) < seq || seq <= r.head/2+reach { // those are read in what is measured
				unread = append(unread, int32(m)+1)
			}
		}
		bitmaps[seq], left[seq] = receipt.NewBitmap(r.members+1, unread), len(unread)
		return bitmaps[seq]
	}
	return scheme{
		name: "bitmap of what is watched", limit: true,
		make: func(context.Context) error {
			for seq := r.head/2 + 1; seq <= r.head/2+reach; seq++ {
				warm(seq)
			}
			return nil
		},
		size: func(context.Context) (float64, error) { return float64(len(warm(r.head))), nil },
		read: func(_ context.Context, member, from, to int) error {
			for seq := from; seq <= to; seq++ {
				if bitmaps[seq].Remove(member + 1) {
					left[seq]--
				}
			}
			return nil
		},
		count: func(_ context.Context, seq int) (int, error) {
			warm(seq)
			return r.members - left[seq], nil
		},
		lists: r.watermarks().lists,
	}
}
