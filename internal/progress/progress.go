// Package progress shows how far something long has come: the share, the rate and the time left.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// barWidth is how many characters a progress bar has between its ends.
	barWidth = 30
	// redrawEvery is how often a bar is drawn again on a terminal, and lineEvery how often a line is written elsewhere.
	redrawEvery = 200 * time.Millisecond
	lineEvery   = 5 * time.Second
)

// Show writes how much of a total is done, with the rate and the time left, until it is stopped. Stop writes it a
// last time. On a terminal it is one line, drawn over and over; elsewhere, a line every few seconds. A nil w is shown
// nothing.
func Show(w io.Writer, what string, total int, done *atomic.Int64) (stop func()) {
	if w == nil {
		return func() {}
	}
	every, before, after := lineEvery, "", "\n"
	if isTerminal(w) {
		every, before, after = redrawEvery, "\r", "\x1b[K" // a shorter line leaves nothing of a longer one
	}
	start := time.Now()
	write := func() {
		// What cannot be shown must not end the run.
		_, _ = io.WriteString(w, before+line(what, int(done.Load()), total, time.Since(start))+after)
	}

	stopped := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				write()
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		writing.Wait()
		write()
		if before != "" {
			_, _ = io.WriteString(w, "\n")
		}
	}
}

// line is one line: replay [#######-------]  50%  15000 of 30000  1000/s  0:15 left
func line(what string, done, total int, elapsed time.Duration) string {
	total = max(total, done) // it may have been counted before the last came
	share := 1.0
	if total > 0 {
		share = float64(done) / float64(total)
	}
	full := int(share * barWidth)
	shown := fmt.Sprintf("%s [%s%s] %3.0f%%  %d of %d", what,
		strings.Repeat("#", full), strings.Repeat("-", barWidth-full), share*100, done, total)
	if done == 0 || elapsed <= 0 {
		return shown
	}
	shown += fmt.Sprintf("  %.0f/s", float64(done)/elapsed.Seconds())
	if done == total {
		return shown + fmt.Sprintf("  in %s", clock(elapsed))
	}
	return shown + fmt.Sprintf("  %s left", clock(time.Duration(float64(elapsed)*(1-share)/share)))
}

// clock is minutes and seconds, with hours where there are any.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
