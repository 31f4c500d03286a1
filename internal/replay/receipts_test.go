package replay_test

import (
	"context"
	"strings"
	"testing"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/replay"
)

// brokenReceipts is the real thing but for what a test breaks.
type brokenReceipts struct {
	*receipt.Receipts
	counted func(*receipt.Receipt)
	listed  func(*receipt.Page)
}

func (b brokenReceipts) Get(ctx context.Context, viewer id.User, in id.Channel, seq id.Seq) (receipt.Receipt, error) {
	got, err := b.Receipts.Get(ctx, viewer, in, seq)
	if b.counted != nil {
		b.counted(&got)
	}
	return got, err
}

func (b brokenReceipts) List(ctx context.Context, viewer id.User, of receipt.Receipt, part receipt.Part, first int, after id.User) (receipt.Page, error) {
	got, err := b.Receipts.List(ctx, viewer, of, part, first, after)
	if b.listed != nil {
		b.listed(&got)
	}
	return got, err
}

func TestReceiptsAreCompared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		broken brokenReceipts
		want   string
	}{
		"as they are":        {},
		"one reader more":    {brokenReceipts{counted: func(r *receipt.Receipt) { r.ReadCount++ }}, "is read by"},
		"one is left out":    {brokenReceipts{counted: func(r *receipt.Receipt) { r.AudienceCount-- }}, "is read by"},
		"one is not listed":  {brokenReceipts{listed: func(p *receipt.Page) { p.People = p.People[min(1, len(p.People)):] }}, "are listed"},
		"nobody is in order": {brokenReceipts{listed: func(p *receipt.Page) { p.People = append(p.People, p.People...) }}, "are listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.NewDatabase(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(store.Close)
			readStates := readstate.New(store, nil)
			test.broken.Receipts = receipt.New(store, nil)
			report, err := replay.Run(t.Context(), replay.Config{
				File: trace(t, 600), Seed: 1, Channels: channel.NewChannels(store, readStates, nil), ReadStates: readStates,
				Receipts: test.broken,
			})
			details := strings.Join(report.Details, "\n")
			if err != nil || report.Receipts < 20 || (report.Wrong > 0) != (test.want != "") || !strings.Contains(details, test.want) {
				t.Errorf("%v, %d receipts, %v\n%s", report, report.Receipts, err, details)
			}
		})
	}
}
