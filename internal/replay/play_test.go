package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newPlay(Config{Speed: 60})
		for range 2 { // what is due already is not waited for
			if err := p.await(t.Context(), start, time.Hour); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != time.Minute {
				t.Errorf("the line of an hour later comes after %v, want a minute", got)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := p.await(ctx, start, 66*24*time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled wait returns %v", err)
		}
		p.Speed = 0
		if err := p.await(t.Context(), start, time.Hour); err != nil || time.Since(start) != 2*time.Minute {
			t.Errorf("at full speed it waits until %v, and returns %v", time.Since(start), err)
		}
	})
}
