package engine

import (
	"fmt"
	"os"
	"strings"
)

const (
	// maxLog is the size in bytes from which an engine's log is begun anew at the next start.
	maxLog = 16 << 20
	// tailLines is how many of an engine's last lines an error quotes.
	tailLines = 8
)

// logFile is where an engine's output goes. It remembers where this start's part begins.
type logFile struct {
	*os.File
	begin int64
}

func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() > maxLog {
		err = file.Truncate(0)
		info, _ = file.Stat()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &logFile{File: file, begin: info.Size()}, nil
}

// explain adds to an error what the engine last wrote since openLog.
func (l *logFile) explain(err error) error {
	info, statErr := l.Stat()
	if statErr != nil || info.Size() <= l.begin {
		return err
	}
	written := make([]byte, min(info.Size()-l.begin, 8<<10))
	if _, readErr := l.ReadAt(written, info.Size()-int64(len(written))); readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Errorf("%w\n  %s\n(from %s)", err, strings.Join(lines, "\n  "), l.Name())
}
