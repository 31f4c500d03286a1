package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program builds Tidemark with the race detector, once, and returns its path. It lies beside the program of the tests:
// go test removes both.
//
//nolint:gochecknoglobals // built once for all tests of the process
var program = sync.OnceValues(func() (string, error) {
	tests, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(tests), "tidemark")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-race", "-o", path, "tidemark").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// process is a Tidemark that runs. What it wrote is shown where the test fails.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout transcript
	stderr transcript
	ended  chan struct{}
	killed bool
}

// start runs Tidemark in an environment of nothing but what is given. What still runs at the end of the test is killed.
func start(t *testing.T, environment []string, args ...string) *process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // it may be asked to end only when the test has
	p := &process{t: t, cmd: exec.CommandContext(ctx, path, args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + t.TempDir(),
		"GORACE=atexit_sleep_ms=0", // else each process takes a second to end
	}, environment...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState tells
	}()
	t.Cleanup(func() {
		p.kill()
		p.inspect()
	})
	return p
}

// run runs Tidemark to its end and returns its exit code.
func run(t *testing.T, environment []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, environment, args...)
	code = p.wait()
	return code, p.stdout.String(), p.stderr.String()
}

// wait returns the exit code once the process has ended; it is -1 where that was killed.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Errorf("%s: still runs after %v", p, patience)
		p.kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks the process to end, as a deployment does, and waits until it has.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Errorf("%s: exit code %d after SIGTERM, want 0", p, code)
	}
}

// kill ends the process as a crash does, if it still runs.
func (p *process) kill() {
	p.killed = true
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it fails where the process has ended
}

// says waits until the process has written what the pattern matches, and returns its first group.
func (p *process) says(pattern string) string {
	p.t.Helper()
	expression := regexp.MustCompile(pattern)
	var found []string
	eventually(p.t, fmt.Sprintf("%s says %s", p, pattern), func() bool {
		found = expression.FindStringSubmatch(p.stdout.String() + p.stderr.String())
		select {
		case <-p.ended:
			return true
		default:
			return found != nil
		}
	})
	if found == nil {
		p.t.Fatalf("%s did not say %s", p, pattern)
	}
	return found[1]
}

// inspect looks through the log for what must never happen.
func (p *process) inspect() {
	p.t.Helper()
	log := p.stderr.String()
	for _, never := range []string{"DATA RACE", "panic", "internal error"} {
		if strings.Contains(log, never) {
			p.t.Errorf("%s: %s", p, never)
		}
	}
	if p.t.Failed() {
		p.t.Logf("%s wrote:\n%s", p, log)
	}
}

func (p *process) String() string { return "tidemark " + strings.Join(p.cmd.Args[1:], " ") }

// transcript keeps what is written to it, and may be read meanwhile.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
