// Command bare answers with a list of badges as Tidemark does, byte for byte, without Tidemark: the same statements,
// sent by pgx from a net/http handler that does nothing else. It knows nobody and checks nothing, so it is the limit
// that the list of badges is held against.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shownUpTo is where counts end.
const shownUpTo = 99

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("cannot serve", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	database := flag.String("database", "", "where Postgres is")
	badges := flag.String("badges", "", "the statement that lists badges")
	channels := flag.String("channels", "", "the statement that looks up channels")
	flag.Parse()

	ctx := context.Background()
	pool, err := pgxpool.New(ctx, *database)
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("POST /graphql", list{pool: pool, badges: *badges, channels: *channels})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	return server.Serve(listener)
}

// list serves the badges of whoever the URL names.
type list struct {
	pool             *pgxpool.Pool
	badges, channels string
}

// badge is what is shown of one.
type badge struct{ channel, version, unread, mentions int64 }

func (l list) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := strconv.ParseInt(r.URL.Query().Get("user"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := l.answer(r.Context(), user)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(answer) // where it fails the client is gone
}

func (l list) answer(ctx context.Context, user int64) ([]byte, error) {
	rows, err := l.pool.Query(ctx, l.badges, shownUpTo+1, user)
	if err != nil {
		return nil, err
	}
	badges, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b badge, err error) {
		var head, state int64
		err = row.Scan(&b.channel, nil, nil, nil, nil, nil, &head, &state, nil, nil, nil, &b.unread, &b.mentions, nil)
		b.version = head + state
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("badges: %w", err)
	}
	ids := make([]int64, len(badges))
	for i, b := range badges {
		ids[i] = b.channel
	}
	names := make(map[int64]string, len(badges))
	rows, err = l.pool.Query(ctx, l.channels, user, ids)
	if err != nil {
		return nil, err
	}
	var id int64
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&id, nil, &name, nil, nil, nil, nil, nil, nil, nil}, func() error {
		names[id] = name
		return nil
	}); err != nil {
		return nil, fmt.Errorf("channels: %w", err)
	}
	return encode(badges, names), nil
}

// encode writes the answer. The names must be of letters, digits and blanks.
func encode(badges []badge, names map[int64]string) []byte {
	out := make([]byte, 0, 256+160*len(badges))
	out = append(out, `{"data":{"badges":{"nodes":[`...)
	var unread, mentions, channels int64
	for i, b := range badges {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"version":`...)
		out = strconv.AppendInt(out, b.version, 10)
		out = append(out, `,"channel":{"id":"`...)
		out = strconv.AppendInt(out, b.channel, 10)
		out = append(out, `","name":"`...)
		out = append(out, names[b.channel]...)
		out = append(out, `"},"unread":{"label":"`...)
		out = appendLabel(out, b.unread)
		out = append(out, `"},"mentions":{"label":"`...)
		out = appendLabel(out, b.mentions)
		out = append(out, `"}}`...)
		unread += b.unread
		mentions += b.mentions
		if b.unread > 0 {
			channels++
		}
	}
	out = append(out, `],"total":{"unread":{"label":"`...)
	out = appendLabel(out, unread)
	out = append(out, `"},"unreadChannels":`...)
	out = strconv.AppendInt(out, channels, 10)
	out = append(out, `,"mentions":{"label":"`...)
	out = appendLabel(out, mentions)
	return append(out, `"}}}}}`...)
}

func appendLabel(out []byte, n int64) []byte {
	out = strconv.AppendInt(out, min(n, shownUpTo), 10)
	if n > shownUpTo {
		out = append(out, '+')
	}
	return out
}
