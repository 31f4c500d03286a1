package replay

import (
	"math/rand/v2"
	"strings"
)

// letters are those of a language that nobody speaks: of one to four bytes, and one of more than a UTF-16 unit.
const letters = "etaoin shrdlu etaoin shrdlu .,?!äéßøж漢🌊\n"

// text returns the words of a line, in exactly so many characters, the same each time.
func text(seed uint64, line, length int) string {
	rng := rand.New(rand.NewPCG(seed, uint64(line))) //nolint:gosec // nobody must guess it
	alphabet := []rune(letters)
	var words strings.Builder
	for range length {
		words.WriteRune(alphabet[rng.IntN(len(alphabet))])
	}
	return words.String()
}
