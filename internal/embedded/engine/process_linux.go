package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes has the kernel send the child a signal when its parent dies. The child leads a process group, so that
// Ctrl-C on a terminal reaches only us, and we stop it in our own order.
func attributes(account Account, parentDied syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: parentDied, Credential: account.credential()}
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // its only error is a bad pattern
	var found []int
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if _, parent := status(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// running reports whether the process exists and is more than a zombie.
func running(pid int) bool {
	state, _ := status(pid)
	return state != "" && state != "Z" && state != "X"
}

// commandLine returns the program and its arguments with a blank between them; empty where there is no such process.
func commandLine(pid int) string {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
}

// status reads the state and the parent from /proc/PID/stat: "12 (name) S 1 ...". A name may hold anything.
func status(pid int) (state string, parent int) {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
