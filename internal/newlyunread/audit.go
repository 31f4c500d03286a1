package newlyunread

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/verify"
	"tidemark/internal/wait"
)

const (
	// How often a copy that is not what the store says is looked at again, and for how long: whatever was under way has come
	// by then.
	auditTries = 10
	auditPause = 100 * time.Millisecond
)

// Audit compares copies with the store.
type Audit struct {
	Store      Store
	Projection Projection
}

var _ verify.Projections = Audit{}

// Drop implements verify.Projections.
func (a Audit) Drop(ctx context.Context, users []id.User) (int, error) {
	return a.Projection.Drop(ctx, users)
}

// DriftOf implements verify.Projections.
func (a Audit) DriftOf(ctx context.Context, users []id.User) (drift []verify.ProjectionDrift, err error) {
	if len(users) == 0 {
		return nil, nil
	}
	s, err := a.Store.NewlyUnread(ctx, users[0], 1) // for the store's epoch
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		found, err := a.audit(ctx, s.Generation.Store, user)
		if err != nil {
			return nil, err
		}
		if found != nil {
			drift = append(drift, *found)
		}
	}
	return drift, nil
}

func (a Audit) audit(ctx context.Context, store string, user id.User) (*verify.ProjectionDrift, error) {
	var kept, truth Snapshot
	for try := range auditTries {
		if try > 0 {
			wait.For(ctx, auditPause)
		}
		copied, is, err := a.Projection.Read(ctx, store, user, MaxKept)
		if err != nil || is != Warm {
			return nil, err
		}
		if truth, err = a.Store.NewlyUnread(ctx, user, MaxKept); err != nil {
			return nil, err
		}
		if kept = copied; agree(kept, truth) {
			return nil, nil //nolint:nilnil // there is none
		}
	}
	return &verify.ProjectionDrift{UserID: user, Projected: describe(kept), Counted: describe(truth)}, nil
}

// agree reports whether a copy lacks nobody whom it should have, and has nobody else. The truth is of a later moment: what
// arrived since may be missing.
func agree(kept, truth Snapshot) bool {
	if kept.Acknowledged != truth.Acknowledged {
		return false
	}
	cut := len(kept.Senders) >= MaxKept // those written to it of long before went, though they may have written since
	for _, s := range truth.Senders {
		if !cut && s.LatestAt.UnixMicro() <= int64(kept.AsOf) && !slices.ContainsFunc(kept.Senders, s.same) {
			return false
		}
	}
	full := len(truth.Senders) >= MaxKept // there may be more whom it does not list
	for _, s := range kept.Senders {
		if !full && !slices.ContainsFunc(truth.Senders, s.same) {
			return false
		}
	}
	return true
}

func (s Sender) same(other Sender) bool { return s.UserID == other.UserID }

func describe(s Snapshot) string {
	const most = 10
	var ids []string
	for _, sender := range s.Senders[:min(most, len(s.Senders))] {
		ids = append(ids, sender.UserID.String())
	}
	if len(s.Senders) > most {
		ids = append(ids, "more")
	}
	return fmt.Sprintf("%d senders (%s), acknowledged up to %s", len(s.Senders), strings.Join(ids, " "), strconv.FormatInt(int64(s.Acknowledged), 10))
}
