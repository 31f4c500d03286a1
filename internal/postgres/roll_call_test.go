package postgres_test

import (
	"slices"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

// rollCalls is a domain, and a worker's lease of a partition.
func rollCalls(t *testing.T) (*domain, newlyunread.Lease) {
	t.Helper()
	d := newDomain(t)
	leases, err := d.store.ClaimLeases(t.Context(), "by hand", 100, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(leases, func(l newlyunread.Lease) bool { return l.Partition == 0 })
	return d, leases[i]
}

// What is for those who are connected is taken and not stored; to acknowledge is told in any case.
func TestMessagesToThoseOnlineAreNotStored(t *testing.T) {
	t.Parallel()
	d, lease := rollCalls(t)
	conn := d.conn()
	exec(t, conn, `INSERT INTO arrival VALUES (1, 2, 5)`)
	exec(t, conn, `INSERT INTO arrival_event (partition, recipient, sender) VALUES (0, 1, 2), (0, 1, 3), (0, 2, 1), (0, 3, NULL), (0, 3, 1)`)
	asked, err := d.store.Recipients(t.Context(), 0, 100)
	if err != nil || !slices.Equal(asked, []id.User{anna, ben, cleo}) {
		t.Fatalf("to be asked about are %v, %v", asked, err)
	}
	done, err := d.store.Project(t.Context(), lease, 100, newlyunread.RollCall{Asked: asked, Online: []id.User{anna, cleo}})
	if err != nil || !done.Held || done.Taken != 5 {
		t.Fatalf("%+v, %v", done, err)
	}
	if !slices.Equal(done.Changed(), []id.User{ben, cleo}) {
		t.Errorf("changed has it for %v, want the one who was away and the one who acknowledged", done.Changed())
	}
	stored := value[[]int64](t, conn, `SELECT array_agg(recipient * 100 + sender ORDER BY recipient, sender) FROM arrival`)
	if !slices.Equal(stored, []int64{102, 201}) {
		t.Errorf("stored are %v", stored)
	}
	if latest := value[int64](t, conn, `SELECT latest FROM arrival WHERE recipient = 1`); latest != 5 {
		t.Errorf("what was there has moved to %d", latest)
	}
}

// Somebody to whom a message comes between the question and the batch was not asked about, and waits for the next one.
// Whoever acknowledges meanwhile does not.
func TestWhoComesBetweenTheQuestionAndTheBatch(t *testing.T) {
	t.Parallel()
	d, lease := rollCalls(t)
	conn := d.conn()
	exec(t, conn, `INSERT INTO arrival_event (partition, recipient, sender) VALUES (0, 1, 2)`)
	asked, err := d.store.Recipients(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, `INSERT INTO arrival_event (partition, recipient, sender) VALUES (0, 2, 1), (0, 3, NULL), (0, 1, 3)`)
	done, err := d.store.Project(t.Context(), lease, 100, newlyunread.RollCall{Asked: asked})
	if err != nil || done.Taken != 3 || !slices.Equal(done.Changed(), []id.User{anna, cleo}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if asked, err = d.store.Recipients(t.Context(), 0, 100); err != nil || !slices.Equal(asked, []id.User{ben}) {
		t.Fatalf("to be asked about are %v, %v", asked, err)
	}
	done, err = d.store.Project(t.Context(), lease, 100, newlyunread.RollCall{Asked: asked, Online: asked})
	if err != nil || done.Taken != 1 || len(done.Changed()) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := value[int](t, conn, `SELECT count(*) FROM arrival WHERE recipient = 2`); n != 0 {
		t.Error("what came to somebody online is stored")
	}
}

// A batch of which nobody was asked about is one of acknowledges alone.
func TestABatchOfAcknowledges(t *testing.T) {
	t.Parallel()
	d, lease := rollCalls(t)
	exec(t, d.conn(), `INSERT INTO arrival_event (partition, recipient) VALUES (0, 1), (0, 2)`)
	asked, err := d.store.Recipients(t.Context(), 0, 100)
	if err != nil || asked == nil || len(asked) != 0 {
		t.Fatalf("to be asked about are %v, %v", asked, err)
	}
	done, err := d.store.Project(t.Context(), lease, 100, newlyunread.RollCall{Asked: asked})
	if err != nil || done.Taken != 2 || !slices.Equal(done.Changed(), []id.User{anna, ben}) {
		t.Fatalf("%+v, %v", done, err)
	}
}
