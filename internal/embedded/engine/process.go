package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// stopGrace bounds how long an engine may take to end when asked to. Then it is killed.
	stopGrace = 10 * time.Second
	// killGrace bounds the wait for the kernel to take down what was killed.
	killGrace = 5 * time.Second
	// startTimeout bounds one start until the engine answers, recovery after a crash included.
	startTimeout = time.Minute
	// answerTimeout bounds one question to an engine that is starting.
	answerTimeout = 2 * time.Second
	// pollInterval is how often a process is looked at that cannot be waited for.
	pollInterval = 10 * time.Millisecond
)

// errEnded says that a process ended before it was ready.
var errEnded = errors.New("ended while starting")

// Process is an engine that runs as a child of this process.
type Process struct {
	cmd  *exec.Cmd
	stop syscall.Signal
	done chan struct{}
	err  error // how it ended; set before done is closed
}

// launch starts the command as the account. The stop signal is the one that asks it to end, and the one it gets
// from the kernel when this process dies.
func launch(cmd *exec.Cmd, account Account, stop syscall.Signal) (*Process, error) {
	cmd.Dir = "/" // the account may have no way into the directory that we are in
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = attributes(account, stop)
	p := &Process{cmd: cmd, stop: stop, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// To the kernel the parent is the thread that forks, so this one is kept for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended: nil for a clean exit. It may be called once Done is closed.
func (p *Process) Err() error { return p.err }

// Signal sends the process a signal. For one that has ended it returns os.ErrProcessDone.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Stop asks the process to end and waits for it. After a bound it is killed, which the error then says.
func (p *Process) Stop() error {
	if err := p.Signal(p.stop); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.PID(), err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
		p.Kill()
		return fmt.Errorf("process %d did not stop within %v and was killed", p.PID(), stopGrace)
	}
}

// Kill ends the process and its descendants at once, with SIGKILL, and returns when all are gone.
func (p *Process) Kill() {
	if p.Signal(syscall.SIGSTOP) == nil {
		killTree(p.PID())
	}
	<-p.done
}

// await returns when ready returns no error. When the process ends before that, the error is errEnded.
func (p *Process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, answerTimeout)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w: %v", errEnded, p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%w; its last answer: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// killTree kills a process and all that descend from it, and waits until they are gone. Signalling the group would not
// do: each child of a Postgres leads a group of its own.
func killTree(pid int) {
	family := freeze(pid)
	for _, member := range family {
		_ = syscall.Kill(member, syscall.SIGKILL)
	}
	for _, member := range family {
		awaitEnd(member, killGrace)
	}
}

// freeze stops a process and its descendants from running, so that they make no more, and returns them all.
func freeze(pid int) []int {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	family := []int{pid}
	for _, child := range children(pid) {
		family = append(family, freeze(child)...)
	}
	return family
}

// awaitEnd reports whether a process, of whomever it is a child, ended within the bound.
func awaitEnd(pid int, bound time.Duration) bool {
	deadline := time.Now().Add(bound)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for running(pid) {
		if now := <-ticker.C; now.After(deadline) {
			return false
		}
	}
	return true
}
