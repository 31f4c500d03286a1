package receipt

import "math/bits"

// Bitmap is a set of members by their index: one bit for each who was ever in the channel, 1,250 bytes for 10,000.
type Bitmap []byte

// NewBitmap returns a set with room for the indexes below size. Those of indexes that lie there are in it, and others are
// nobody's.
func NewBitmap(size int, indexes []int32) Bitmap {
	b := make(Bitmap, (max(0, size)+7)/8)
	for _, i := range indexes {
		if b.holds(int(i)) {
			b[i/8] |= 1 << (i % 8)
		}
	}
	return b
}

// Has reports whether a member is in the set.
func (b Bitmap) Has(index int) bool {
	return b.holds(index) && b[index/8]&(1<<(index%8)) != 0
}

// Remove takes a member out, and reports whether they were in.
func (b Bitmap) Remove(index int) bool {
	if !b.Has(index) {
		return false
	}
	b[index/8] &^= 1 << (index % 8)
	return true
}

// Count is how many are in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, eight := range b {
		n += bits.OnesCount8(eight)
	}
	return n
}

func (b Bitmap) holds(index int) bool { return index >= 0 && index/8 < len(b) }
