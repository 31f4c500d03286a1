package replay_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/replay"
)

const header = "seconds\tchannel\tsender\tlength\treply_to\tmentions\n"

func TestRun(t *testing.T) {
	t.Parallel()
	config := onDatabase(t, trace(t, 600))
	var shown bytes.Buffer
	config.Progress = &shown
	report, err := replay.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if report.Wrong > 0 {
		t.Errorf("%d wrong:\n%s", report.Wrong, strings.Join(report.Details, "\n"))
	}
	if got := report.String(); !regexp.MustCompile(`^600 messages, 30 people, \d{3} badges, 0 screens, 0 icons, 0 wrong$`).MatchString(got) {
		t.Errorf("the report is %q", got)
	}
	if got := shown.String(); !strings.Contains(got, "replay [##############################] 100%  600 of 600 ") ||
		!strings.Contains(got, "compare [##############################] 100%") {
		t.Errorf("the progress shown is %q", got)
	}
}

func TestRunOnAnOffset(t *testing.T) {
	t.Parallel()
	config := onDatabase(t, trace(t, 100))
	for _, config.Offset = range []int64{0, 1 << 32} {
		report, err := replay.Run(t.Context(), config)
		if err != nil || report.Wrong > 0 {
			t.Fatalf("with the offset %d: %v, %v, %q", config.Offset, report, err, report.Details)
		}
	}
	if _, err := replay.Run(t.Context(), config); err == nil {
		t.Error("a second replay with the same offset is no error")
	}
}

func TestRunInALargeChannel(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(header)
	var wantBadges int
	for sender := 1; wantBadges < 2*channel.MaxPeople; sender++ { // each names as many as one message may
		fmt.Fprintf(&text, "0\t1\t%d\t10\t\t", sender)
		for i := range channel.MaxMentions {
			fmt.Fprintf(&text, "%d,", 1000+sender*channel.MaxMentions+i)
		}
		text.WriteString("*\n")
		wantBadges += 1 + channel.MaxMentions
	}
	report, err := replay.Run(t.Context(), onDatabase(t, file(t, text.String())))
	if err != nil || report.Wrong > 0 || report.People != wantBadges {
		t.Errorf("%v, %v, %q, want %d people", report, err, report.Details, wantBadges)
	}
}

func TestRunOfNothing(t *testing.T) {
	t.Parallel()
	report, err := replay.Run(t.Context(), replay.Config{File: file(t, header)})
	if got, want := report.String(), "0 messages, 0 people, 0 badges, 0 screens, 0 icons, 0 wrong"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRunCanBeRepeated(t *testing.T) {
	t.Parallel()
	path := trace(t, 400)
	badges := func(seed uint64, workers int) map[id.User][]readstate.Badge {
		config := onDatabase(t, path)
		config.Seed, config.Workers = seed, workers
		if report, err := replay.Run(t.Context(), config); err != nil || report.Wrong > 0 {
			t.Fatal(report, err, report.Details)
		}
		all := make(map[id.User][]readstate.Badge)
		for user := id.User(1); user <= 30; user++ {
			page, err := config.ReadStates.List(t.Context(), user, readstate.Filter{
				IncludeMuted: true, First: readstate.MaxPage, Cap: readstate.MaxCap,
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Badges {
				page.Badges[i].HeadVersion, page.Badges[i].StateVersion, page.Badges[i].Activity = 0, 0, 0 // these tell what came before what
			}
			slices.SortFunc(page.Badges, func(a, b readstate.Badge) int { return cmp.Compare(a.ChannelID, b.ChannelID) })
			all[user] = page.Badges
		}
		return all
	}
	first := badges(7, 32)
	if again := badges(7, 1); !reflect.DeepEqual(first, again) {
		t.Errorf("two runs with one seed end with\n%v\nand\n%v", first, again)
	}
	if other := badges(8, 32); reflect.DeepEqual(first, other) {
		t.Error("a run with another seed ends with the same")
	}
}

func TestRunFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	path := trace(t, 200)
	for name, breakIt := range map[string]func(*brokenChannels, *brokenReadStates){
		"a badge has one more": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Badges[0].Countable++ }
		},
		"a badge has one mention more": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Badges[0].Naming++ }
		},
		"a badge is muted": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Badges[0].Muted = !p.Badges[0].Muted }
		},
		"a badge is missing": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Badges = p.Badges[1:] }
		},
		"a badge comes twice": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Badges = append(p.Badges, p.Badges[0]) }
		},
		"a badge is of a channel they are not in": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) {
				p.Badges = append(p.Badges, readstate.Badge{ChannelID: 999, Activity: -1})
			}
		},
		"a total has one more": func(_ *brokenChannels, r *brokenReadStates) {
			r.list = func(p *readstate.Page) { p.Total.Countable++ }
		},
		"a mark read is lost": func(_ *brokenChannels, r *brokenReadStates) { r.lost = true },
		"a delete is lost":    func(c *brokenChannels, _ *brokenReadStates) { c.notDeleted = true },
		"a leave is lost":     func(c *brokenChannels, _ *brokenReadStates) { c.notLeft = true },
		"a message has other words": func(c *brokenChannels, _ *brokenReadStates) {
			c.messages = func(page []channel.Message) []channel.Message {
				page[0].Body += "."
				return page
			}
		},
		"a message is missing": func(c *brokenChannels, _ *brokenReadStates) {
			c.messages = func(page []channel.Message) []channel.Message { return page[1:] }
		},
		"a send is not told from its repetition": func(c *brokenChannels, _ *brokenReadStates) {
			c.draft = func(d *channel.Draft) { d.ClientMessageID = "" }
		},
		"a send names nobody": func(c *brokenChannels, _ *brokenReadStates) {
			c.draft = func(d *channel.Draft) { d.Mentions = nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := onDatabase(t, path)
			channels := &brokenChannels{Channels: config.Channels}
			readStates := &brokenReadStates{ReadStates: config.ReadStates}
			breakIt(channels, readStates)
			config.Channels, config.ReadStates = channels, readStates
			report, err := replay.Run(t.Context(), config)
			// Some acts after a wrong one may be refused, so that there is an error as well.
			if report.Wrong == 0 || len(report.Details) == 0 {
				t.Errorf("it is not found: %v, %v", report, err)
			}
		})
	}
}

func TestOneWrongBadgeIsOne(t *testing.T) {
	t.Parallel()
	config := onDatabase(t, trace(t, 100))
	var once atomic.Bool
	config.ReadStates = &brokenReadStates{ReadStates: config.ReadStates, list: func(p *readstate.Page) {
		if once.CompareAndSwap(false, true) {
			p.Badges[0].Countable++
		}
	}}
	report, err := replay.Run(t.Context(), config)
	if err != nil || report.Wrong != 1 || len(report.Details) != 1 || !strings.HasSuffix(report.String(), " badges, 0 screens, 0 icons, 1 wrong") {
		t.Errorf("got %v, %v, %q", report, err, report.Details)
	}
}

func TestRefusedActsEndTheRun(t *testing.T) {
	t.Parallel()
	path := trace(t, 200)
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"refused":   {refused, "replay: " + path + ":"},
		"cancelled": {context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			config := onDatabase(t, path)
			var sends atomic.Int64
			config.Channels = &brokenChannels{Channels: config.Channels, send: func() error {
				if sends.Add(1) < 50 {
					return nil
				}
				if test.err == context.Canceled { //nolint:errorlint // it is this very one
					cancel()
					return nil
				}
				return test.err
			}}
			report, err := replay.Run(ctx, config)
			if !errors.Is(err, test.err) || !strings.HasPrefix(err.Error(), test.want) || report.Messages == 200 {
				t.Errorf("got %v, %v, want an error that starts with %q", report, err, test.want)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	good := file(t, header+"0\t1\t1\t1\t\t\n")
	bad := file(t, header+"0\t1\t1\tlong\t\t\n")
	missing := filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		config replay.Config
		want   string
	}{
		{replay.Config{File: bad}, "replay: " + bad + `:2: column length must be a whole number from 0 to 20000, not "long"`},
		{replay.Config{File: missing}, "replay: read trace: open " + missing + ": no such file or directory"},
		{replay.Config{File: good, Speed: 0.5}, "replay: Speed must be 0, or at least 1"},
		{replay.Config{File: good, Offset: -1}, "replay: Offset must be from 0 to 4611686018427387904"},
		{replay.Config{File: good, Workers: -1}, "replay: Workers must not be negative"},
		{replay.Config{File: good, Screens: -1}, "replay: Screens must be from 0 to 10000"},
		{replay.Config{File: good, Screens: 10_001}, "replay: Screens must be from 0 to 10000"},
		{replay.Config{File: good, Screens: 1}, "replay: Processes must be given where there are Screens"},
		{replay.Config{File: good, NewlyUnread: &newlyunread.NewlyUnread{}}, "replay: Queue must be given where there is NewlyUnread"},
		{replay.Config{File: good, SmallGroup: -1}, "replay: SmallGroup must not be negative"},
		{replay.Config{File: good, Patience: -1}, "replay: Patience must not be negative"},
	} {
		if _, err := replay.Run(t.Context(), test.config); err == nil || err.Error() != test.want {
			t.Errorf("%+v: got the error %v, want %s", test.config, err, test.want)
		}
	}
}

// brokenChannels is the real thing but for what a test breaks.
type brokenChannels struct {
	replay.Channels
	send                func() error
	draft               func(*channel.Draft)
	messages            func([]channel.Message) []channel.Message
	notDeleted, notLeft bool
}

func (c *brokenChannels) Send(ctx context.Context, viewer person.Viewer, draft channel.Draft, limit int) (channel.Sent, error) {
	if c.send != nil {
		if err := c.send(); err != nil {
			return channel.Sent{}, err
		}
	}
	if c.draft != nil {
		c.draft(&draft)
	}
	return c.Channels.Send(ctx, viewer, draft, limit)
}

func (c *brokenChannels) Delete(ctx context.Context, viewer person.Viewer, channelID id.Channel, seq id.Seq) (channel.Message, error) {
	if c.notDeleted {
		return channel.Message{}, nil
	}
	return c.Channels.Delete(ctx, viewer, channelID, seq)
}

func (c *brokenChannels) RemoveMember(ctx context.Context, viewer person.Viewer, channelID id.Channel, user id.User) (*channel.Channel, error) {
	if c.notLeft {
		return nil, nil //nolint:nilnil // as the real one answers
	}
	return c.Channels.RemoveMember(ctx, viewer, channelID, user)
}

func (c *brokenChannels) Messages(ctx context.Context, viewer person.Viewer, ch channel.Channel, before *id.Seq, last int) ([]channel.Message, error) {
	page, err := c.Channels.Messages(ctx, viewer, ch, before, last)
	if c.messages != nil && len(page) > 0 {
		page = c.messages(page)
	}
	return page, err
}

// brokenReadStates is the real thing but for what a test breaks.
type brokenReadStates struct {
	replay.ReadStates
	list func(*readstate.Page)
	lost bool
}

func (r *brokenReadStates) List(ctx context.Context, user id.User, filter readstate.Filter) (readstate.Page, error) {
	page, err := r.ReadStates.List(ctx, user, filter)
	if r.list != nil && len(page.Badges) > 0 {
		r.list(&page)
	}
	return page, err
}

func (r *brokenReadStates) MarkRead(ctx context.Context, user id.User, device id.Device, cursor readstate.Cursor, limit int) (readstate.Result, error) {
	if r.lost {
		return readstate.Result{}, nil
	}
	return r.ReadStates.MarkRead(ctx, user, device, cursor, limit)
}

// onDatabase returns a replay on a database of the test's own.
func onDatabase(t *testing.T, path string) replay.Config {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.NewDatabase(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	readStates := readstate.New(store, nil)
	return replay.Config{File: path, Seed: 1, Channels: channel.NewChannels(store, readStates, nil), ReadStates: readStates}
}

// trace writes a trace of 30 people in 5 channels: one busy, with all that a line can have.
func trace(t *testing.T, lines int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	text.WriteString(header)
	seconds := 0
	for i := range lines {
		seconds += rng.IntN(3) * rng.IntN(60)
		sender, length := 1+rng.IntN(20), rng.IntN(200)
		channelNumber := 1 + min(rng.IntN(10), 4)
		var replyTo string
		if other := 1 + rng.IntN(30); other != sender && rng.IntN(2) == 0 {
			replyTo = fmt.Sprint(other)
		}
		var mentions []string
		for range rng.IntN(4) * rng.IntN(2) {
			mentions = append(mentions, fmt.Sprint(1+rng.IntN(30)))
		}
		switch i % 40 {
		case 10:
			mentions = append(mentions, "*")
		case 20:
			length = 0
		case 30:
			length = channel.MaxBodyLength
		}
		fmt.Fprintf(&text, "%d\t%d\t%d\t%d\t%s\t%s\n", seconds, channelNumber, sender, length, replyTo, strings.Join(mentions, ","))
	}
	return file(t, text.String())
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.tsv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
