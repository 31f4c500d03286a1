package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// reclaim makes a directory free for a new engine: it stops the one that the pid file names, if that still runs on the
// directory. A process that merely has the number of a dead engine is left alone, and the file removed, for it would
// keep a Postgres from starting. The file of a process that is gone stays: Postgres finds by it whether children of
// the dead one still hold its memory.
func reclaim(pidFile, dir string, stop syscall.Signal) error {
	content, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return os.Remove(pidFile) // cut short by a crash
	}
	if running(pid) && strings.Contains(commandLine(pid), " "+dir+" ") {
		if err := syscall.Kill(pid, stop); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d, left over in %s: %w", pid, dir, err)
		}
		if !awaitEnd(pid, stopGrace) {
			killTree(pid)
		}
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return nil
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
