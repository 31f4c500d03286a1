package main

import (
	"errors"
	"os"
	"strings"
	"time"
)

const (
	// wholeProbe is how long the disk is looked at before and after all, roundProbe around each round.
	wholeProbe = time.Second
	roundProbe = 100 * time.Millisecond
	// walBlock is the size of what Postgres writes and flushes at the least.
	walBlock = 8 << 10
)

// syncTime writes one block over and over for a while, as a commit does, and returns the median time until the disk
// has it.
func syncTime(dir string, while time.Duration) (took time.Duration, err error) {
	file, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, walBlock)
	var times []time.Duration
	for begin := time.Now(); len(times) == 0 || time.Since(begin) < while; {
		start := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	return median(times).Round(time.Microsecond), nil
}

// loadAverage is what the kernel tells, where it does.
func loadAverage() string {
	told, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(told))[:3], " ")
}
