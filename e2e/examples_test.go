package e2e_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestTwoDevices does what the example asks for, as somebody who reads it would.
func TestTwoDevices(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// With the flag of Node 20 given here, the example need not start another Node that would outlive it.
	example := runNode(t, "../examples/two-devices", "--experimental-websocket", "--no-warnings", "two-devices.mjs",
		"--url", s.url, "--data-dir", dir, "--program", path)
	killed := 0
	for kill := range example.lines {
		pid := regexp.MustCompile(`kill -9 (\d+)`).FindStringSubmatch(kill)
		switch {
		case pid == nil:
			continue
		case strings.Contains(kill, "Redis"):
			killed++
			killPID(t, pid[1])
		default:
			killed++
			expect(t, "the process id of the server", pid[1], strconv.Itoa(s.cmd.Process.Pid))
			s.kill()
			s = dev(t, dir, "TIDEMARK_LISTEN="+strings.TrimPrefix(s.url, "http://"))
		}
	}
	example.ends()
	expect(t, "what was killed", killed, 2)
	s.stop()
}

// TestTwoDevicesUnattended has the example kill and start things itself.
func TestTwoDevicesUnattended(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	example := runNode(t, "../examples/two-devices", "two-devices.mjs", "--kill",
		"--url", s.url, "--data-dir", dir, "--program", path)
	said := strings.Join(example.ends(), "")
	for _, step := range []string{"Redis is there again", "Ben writes to the next", "Every device was right"} {
		if !strings.Contains(said, step) {
			t.Errorf("there is no %q in\n%s", step, said)
		}
	}
	expect(t, "how the first server ended", s.wait(), -1)
}

func killPID(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestNewlyUnreadExample runs the example of the messages icon.
func TestNewlyUnreadExample(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	example := runNode(t, "../examples/newly-unread", "newly-unread.mjs", "--url", s.url, "--data-dir", dir, "--program", path)
	if said := strings.Join(example.ends(), "\n"); !strings.Contains(said, "No badge has changed") {
		t.Errorf("it says\n%s", said)
	}
	s.stop()
}

// TestReadReceiptsExample runs the example of read receipts, in a smaller group.
func TestReadReceiptsExample(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	example := runNode(t, "../examples/read-receipts", "read-receipts.mjs", "--url", s.url, "--data-dir", dir, "--members", "1500", "--readers", "400")
	if said := strings.Join(example.ends(), "\n"); !strings.Contains(said, "brute force agree") {
		t.Errorf("it says\n%s", said)
	}
	s.stop()
}

// TestExamplesWithoutTheirServer has the examples say what is wrong where nobody answers, and where another server does.
func TestExamplesWithoutTheirServer(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir, "TIDEMARK_DEMO=false")
	other := serve(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range [][]string{
		{"newly-unread/newly-unread.mjs", "--program", path},
		{"read-receipts/read-receipts.mjs"},
		{"two-devices/two-devices.mjs", "--program", path},
	} {
		for url, says := range map[string]string{"http://127.0.0.1:1": "nobody answers", other.url: "token"} {
			node := exec.CommandContext(t.Context(), "node", append(example, "--url", url, "--data-dir", dir)...)
			node.Dir = "../examples"
			out, err := node.CombinedOutput()
			if err == nil || !strings.Contains(string(out), says) || !strings.Contains(string(out), "is make run going at "+url+"?") {
				t.Errorf("%v at %s ends with %v and says\n%s", example, url, err, out)
			}
		}
	}
	s.stop()
}
