package main

import (
	"net"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const userTimeout = 18

// giveUpAfter has the kernel give a connection up whose other end has acknowledged nothing for that long. By itself it
// goes on for a quarter of an hour with a client whose network has gone away.
func giveUpAfter(conn *net.TCPConn, silence time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(silence.Milliseconds())) // a wish
	})
}
