//go:build !linux

package main

import (
	"net"
	"time"
)

// giveUpAfter does nothing: here the kernel decides when a client whose network has gone away is given up.
func giveUpAfter(*net.TCPConn, time.Duration) {}
