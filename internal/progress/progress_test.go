package progress

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestShowWritesALineEveryFewSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var done atomic.Int64
		stop := Show(&out, "replay", 3000, &done)
		time.Sleep(lineEvery + time.Second)
		done.Store(1500)
		time.Sleep(lineEvery)
		done.Store(3000)
		time.Sleep(time.Second)
		stop()
		const want = "replay [------------------------------]   0%  0 of 3000\n" +
			"replay [###############---------------]  50%  1500 of 3000  150/s  0:10 left\n" +
			"replay [##############################] 100%  3000 of 3000  250/s  in 0:12\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestShowOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		Show(&out, "replay", 0, new(atomic.Int64))()
		if got, want := out.String(), "replay [##############################] 100%  0 of 0\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		Show(nil, "replay", 0, new(atomic.Int64))()
	})
}

// People may come while they are counted.
func TestMoreThanAll(t *testing.T) {
	t.Parallel()
	if got, want := line("verify", 12, 10, 0), "verify [##############################] 100%  12 of 12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond:                  "0:00",
		59*time.Second + 600*time.Millisecond:   "1:00",
		66*24*time.Hour + time.Minute:           "1584:01:00",
		time.Hour + 2*time.Minute + time.Second: "1:02:01",
	} {
		if got := clock(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}
