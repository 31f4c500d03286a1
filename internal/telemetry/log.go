package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// Logger returns a logger that writes lines of level and above to w: for people where format is "text", for
// machines where it is "json".
func Logger(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format must be text or json, not %q", format)
}
