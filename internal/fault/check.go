package fault

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// CheckRange refuses an argument below low or above high.
func CheckRange[N cmp.Ordered](argument string, n, low, high N) error {
	if n < low || n > high {
		return BadInput(argument, "must be from %v to %v", low, high)
	}
	return nil
}

// CheckText refuses an argument that has fewer than low or more than high characters, or holds what no text may:
// U+0000, which the database cannot keep.
func CheckText(argument, text string, low, high int) error {
	if n := utf8.RuneCountInString(text); n < low || n > high {
		return BadInput(argument, "must have from %d to %d characters", low, high)
	}
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return BadInput(argument, "must be text without U+0000")
	}
	return nil
}
