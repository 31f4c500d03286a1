// Package collect has a server give up what memory it does not need, so that a benchmark can tell what it does need.
package collect

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Collecting is what WhenAsked returns, so that it can be called where a package is initialised.
type Collecting struct{}

// WhenAsked has garbage collected, and what is free handed back to the system, whenever the process is sent SIGUSR1. It
// goes on until the process ends.
func WhenAsked() Collecting {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			debug.FreeOSMemory()
		}
	}()
	return Collecting{}
}
