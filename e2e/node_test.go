package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// script is a Node script that runs. It is for one goroutine.
type script struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // what it prints
	stdout transcript
	stderr transcript
}

// runNode starts a script in a directory, and in an environment of nothing much. What still runs some minutes later, or
// at the end of the test, is killed.
func runNode(t *testing.T, dir string, args ...string) *script {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v: install Node 20 or newer", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	t.Cleanup(cancel)
	s := &script{t: t, cmd: exec.CommandContext(ctx, node, args...), lines: make(chan string)}
	s.cmd.Dir, s.cmd.Stderr, s.cmd.WaitDelay = dir, &s.stderr, 5*time.Second
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir()}
	stdin, inErr := s.cmd.StdinPipe()
	stdout, outErr := s.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read, giveUp := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		defer close(s.lines)
		for lines := bufio.NewReader(stdout); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = s.stdout.Write([]byte(line)) // it never fails
			select {
			case s.lines <- line:
			case <-giveUp:
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		close(giveUp)
		<-read
		_ = s.cmd.Wait() // it was waited for before where that matters
		if t.Failed() {
			t.Logf("%s wrote:\n%s\n%s", s.cmd, s.stdout.String(), s.stderr.String())
		}
	})
	return s
}

// line waits for what the script prints next. It is empty, and the test has failed, where nothing comes.
func (s *script) line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			s.t.Errorf("%s has ended", s.cmd)
		}
		return line
	case <-time.After(patience):
		s.t.Errorf("%s has nothing to say for %v", s.cmd, patience)
		return ""
	}
}

// tell writes a line of JSON to the script.
func (s *script) tell(order any) {
	s.t.Helper()
	line, err := json.Marshal(order)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.stdin.Write(append(line, '\n')); err != nil {
		s.t.Errorf("%s: %v", s.cmd, err)
	}
}

// ends has the script read to the end, and returns what it prints until it ends itself, which must be without an error
// and without a complaint.
func (s *script) ends() (rest []string) {
	s.t.Helper()
	_ = s.stdin.Close() // it fails where the script has ended
	overdue := time.After(5 * patience)
	for {
		select {
		case line, ok := <-s.lines:
			if ok {
				rest = append(rest, line)
				continue
			}
			if err := s.cmd.Wait(); err != nil {
				s.t.Errorf("%s: %v", s.cmd, err)
			}
			expect(s.t, "what it complains of", s.stderr.String(), "")
			return rest
		case <-overdue:
			s.t.Errorf("%s does not end", s.cmd)
			return rest
		}
	}
}
