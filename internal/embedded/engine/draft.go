package engine

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// draftAge is how old a draft must be to be taken for one that nobody works on any more: a program that outlives a
// killed process for a moment must not lose the ground under its feet.
const draftAge = time.Minute

// draftOf makes a directory beside the one named, to be filled and then renamed to it: so it is whole once it is there.
// Old drafts, left by killed processes, go.
func draftOf(dir string) (string, error) {
	drafts, _ := filepath.Glob(dir + ".new-*") // its only error is a bad pattern
	for _, draft := range drafts {
		if info, err := os.Stat(draft); err == nil && time.Since(info.ModTime()) > draftAge {
			_ = os.RemoveAll(draft) // what cannot be removed does no harm
		}
	}
	return os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
}

// syncDir makes renames in the directory outlive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
