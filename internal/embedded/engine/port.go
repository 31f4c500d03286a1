package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

const (
	// Ports are taken from below those that Linux (32768) and macOS (49152) give to outgoing connections, so that
	// no client takes the port of an engine that is down for a moment.
	firstPort = 20000
	portCount = 12000

	portTries  = 100
	startTries = 4
	startPause = 250 * time.Millisecond
)

// free reports whether an engine could listen on a loopback port now.
func free(ctx context.Context, port int) bool {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func freePort(ctx context.Context) (int, error) {
	for range portTries {
		if port := firstPort + rand.IntN(portCount); free(ctx, port) { //nolint:gosec // a port is no secret
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found in %d tries", portTries)
}

// tryPorts starts an engine on *port, or where that is zero on the preferred port or another free one, which is then
// kept there. It tries more than once: another process may take the port between our look and the engine's, and what
// a killed Postgres leaves behind may hold its memory for a moment longer.
func tryPorts(ctx context.Context, port *int, preferred int,
	start func(ctx context.Context, port int) (*Process, error),
) (*Process, error) {
	pause := time.NewTicker(startPause)
	defer pause.Stop()
	for try := 1; ; try++ {
		chosen := *port
		if chosen == 0 && try == 1 && preferred != 0 && free(ctx, preferred) {
			chosen = preferred
		}
		if chosen == 0 {
			var err error
			if chosen, err = freePort(ctx); err != nil {
				return nil, err
			}
		}
		process, err := start(ctx, chosen)
		if err == nil {
			*port = chosen
			return process, nil
		}
		if try == startTries || !errors.Is(err, errEnded) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-pause.C:
		}
	}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
