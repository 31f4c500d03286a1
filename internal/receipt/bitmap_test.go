package receipt_test

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/receipt"
)

// A bitmap is a set, whatever it is asked.
func TestABitmapIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(-1, 100).Draw(t, "size")
		index := rapid.Int32Range(-20, 200)
		indexes := rapid.SliceOf(index).Draw(t, "indexes")
		b := receipt.NewBitmap(size, indexes)
		room := int32(max(0, size)+7) / 8 * 8
		want := make(map[int32]bool)
		for _, i := range indexes {
			if i >= 0 && i < room {
				want[i] = true
			}
		}
		for range 20 {
			i := index.Draw(t, "index")
			if b.Has(int(i)) != want[i] || b.Count() != len(want) {
				t.Fatalf("%d is in: %v, of %d; want %v of %d", i, b.Has(int(i)), b.Count(), want[i], len(want))
			}
			if b.Remove(int(i)) != want[i] {
				t.Fatalf("%d is taken out", i)
			}
			delete(want, i)
		}
	})
}

// What nobody was given out takes no memory: an index from outside cannot make a bitmap grow.
func TestABitmapIsAsLargeAsItsChannel(t *testing.T) {
	t.Parallel()
	b := receipt.NewBitmap(10_000, []int32{0, 9_999, 1 << 30, -1})
	if len(b) != 1250 || b.Count() != 2 || b.Remove(1<<30) || b.Has(1<<62) || b.Has(-1) {
		t.Errorf("%d bytes, %d members", len(b), b.Count())
	}
}
