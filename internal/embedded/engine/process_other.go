//go:build !linux

package engine

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes knows no way to tie the child's life to ours: see reclaim for what becomes of it then. The child leads
// a process group, so that Ctrl-C on a terminal reaches only us, and we stop it in our own order.
func attributes(account Account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: account.credential()}
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	for _, field := range strings.Fields(output("pgrep", "-P", strconv.Itoa(pid))) {
		if child, err := strconv.Atoi(field); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// running reports whether the process exists and is more than a zombie.
func running(pid int) bool {
	state := strings.TrimSpace(output("ps", "-o", "stat=", "-p", strconv.Itoa(pid)))
	return state != "" && !strings.HasPrefix(state, "Z")
}

// commandLine returns the program and its arguments with a blank between them; empty where there is no such process.
func commandLine(pid int) string {
	return output("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid))
}

func output(name string, args ...string) string {
	out, _ := exec.Command(name, args...).Output() // it fails where nothing is found
	return string(out)
}
