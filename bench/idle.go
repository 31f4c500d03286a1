package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// collecting is added to Tidemark's program where its memory is measured.
	collecting = `package main

import "tidemark/bench/collect"

var _ = collect.WhenAsked()
`
	// collectTime is plenty for the collection of all garbage.
	collectTime = 2 * time.Second
)

// fewWatchers have their badges open before anything is measured: what a server needs for the first is not what it
// needs for each.
const fewWatchers = 20

// idle is what a server holds for one viewer to whom nothing happens.
type idle struct{ resident, goroutines float64 }

// idles is what one round found out about them.
type idles struct{ tidemark, stock idle }

// idleSubscribers measures what viewers cost who look at badges that do not change.
func idleSubscribers(ctx context.Context, l *lab) ([]row, error) {
	tidemark, stock, err := l.contenders(ctx)
	if err != nil {
		return nil, err
	}
	if tidemark.program, err = l.buildCollecting(ctx); err != nil {
		return nil, err
	}
	found, err := measure(ctx, l, func(ctx context.Context) (r idles, err error) {
		if r.tidemark, err = l.holding(ctx, tidemark); err != nil {
			return r, err
		}
		r.stock, err = l.holding(ctx, stock)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	who := short(l.large().size) + " idle subscribers: "
	return []row{
		found.row(who+"memory for each", "%.1f kB", atMost(20), func(r idles) float64 { return r.tidemark.resident / 1000 }).onTime(),
		found.row(who+"goroutines for each", "%.2f", atMost(2), func(r idles) float64 { return r.tidemark.goroutines }),
		found.row(who+"memory for each, stock gqlgen", "%.1f kB", bound{}, func(r idles) float64 { return r.stock.resident / 1000 }).onTime(),
		found.row(who+"goroutines for each, stock gqlgen", "%.2f", bound{}, func(r idles) float64 { return r.stock.goroutines }),
	}, nil
}

func (l *lab) holding(ctx context.Context, c contender) (each idle, err error) {
	crowd := l.large()
	err = c.serving(ctx, func(s *server) error {
		few, err := s.gather(ctx, crowd.part(0, fewWatchers), crowd.shared, nil)
		if err != nil {
			return err
		}
		defer few.leave()
		before, err := s.collected(ctx)
		if err != nil {
			return err
		}
		rest := crowd.part(fewWatchers, crowd.size)
		many, err := s.gather(ctx, rest, rest.shared, nil)
		if err != nil {
			return err
		}
		defer many.leave()
		if err := l.settle(ctx, many); err != nil {
			return err
		}
		after, err := s.collected(ctx)
		each.resident = (after.resident - before.resident) / float64(rest.size)
		each.goroutines = (after.goroutines - before.goroutines) / float64(rest.size)
		return err
	})
	return each, err
}

// collected returns the server's vitals when it has no garbage.
func (s *server) collected(ctx context.Context) (vitals, error) {
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return vitals{}, err
	}
	if err := pauseUntil(ctx, time.Now().Add(collectTime)); err != nil {
		return vitals{}, err
	}
	return s.vitals(ctx)
}

// buildCollecting builds Tidemark as it is, but for one file more.
func (l *lab) buildCollecting(ctx context.Context) (program string, err error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "tidemark").Output()
	if err != nil {
		return "", err
	}
	added, overlay := filepath.Join(l.dir, "collecting.go"), filepath.Join(l.dir, "overlay.json")
	as := filepath.Join(strings.TrimSpace(string(source)), "collecting.go")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {as: added}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(added, []byte(collecting), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	dir, err := l.buildIn(ctx, "collecting", "-overlay", overlay, "tidemark")
	return filepath.Join(dir, "tidemark"), err
}
