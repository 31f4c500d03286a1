package main

import (
	"net"
	"syscall"
	"testing"
	"time"
)

func TestAConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	giveUpAfter(tcp, 25*time.Second)
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout); got != 25_000 || err != nil {
			t.Errorf("given up after %d ms, %v", got, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
