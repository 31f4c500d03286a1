package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"tidemark/internal/embedded/engine"
)

// startRedis runs a Redis, on the last port if that is free.
func (o *owner) startRedis(opening, running context.Context, lastPort int) (url string, err error) {
	account, err := engine.AccountFor("redis", "nobody")
	if err != nil {
		return "", err
	}
	found, err := o.machine.FindRedis(opening, account)
	var missing *engine.NotFoundError
	if errors.As(err, &missing) {
		return o.startStandIn(lastPort, missing)
	}
	if err != nil {
		return "", err
	}
	server := &engine.Redis{
		Installation:  found[0],
		Dir:           filepath.Join(o.dir, "redis"),
		Log:           filepath.Join(o.dir, "redis.log"),
		PreferredPort: lastPort,
		Account:       account,
	}
	process, err := server.Start(opening)
	if err != nil {
		return "", err
	}
	url = server.URL()
	o.log.Info("Redis: started", "program", found[0].Server, "url", url)
	at := &endpoint{URL: url, PID: process.PID()}
	o.mu.Lock()
	o.record.Redis = at
	o.mu.Unlock()
	o.watch(running, "Redis", process, server.Start, at)
	return url, nil
}

// startStandIn runs a Redis inside this process. It knows the commands that Tidemark uses, and ends with the process.
func (o *owner) startStandIn(lastPort int, missing *engine.NotFoundError) (url string, err error) {
	standIn := miniredis.NewMiniRedis()
	standIn.ClockTTL(true) // or nothing would ever expire
	err = standIn.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(lastPort)))
	if err != nil && lastPort != 0 {
		err = standIn.StartAddr("127.0.0.1:0")
	}
	if err != nil {
		missing.Tried = append(missing.Tried, fmt.Sprintf("a stand-in inside this process: %v", err))
		missing.Remedy += " Or give the URL of a running server."
		return "", missing
	}
	o.standIn = standIn
	url = "redis://" + standIn.Addr() + "/0"
	o.log.Warn("Redis: none on this machine, a stand-in inside this process takes its place, good for a first look",
		"lookedAt", missing.Tried, "url", url)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record.Redis = &endpoint{URL: url, PID: os.Getpid()}
	return url, nil
}
