package engine

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Not in parallel: a program that was just written cannot be run while another test's fork still has it open.
func TestFindPostgresInOrder(t *testing.T) {
	root := t.TempDir()
	named := install(t, root, "named", "echo 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'", "initdb")
	linked := install(t, root, "linked", "echo 'postgres (PostgreSQL) 18beta1'", "initdb")
	old := install(t, root, "old", "echo 'postgres (PostgreSQL) 14.2'", "initdb")
	lone := install(t, root, "lone", "echo 'postgres (PostgreSQL) 17.1'")
	broken := install(t, root, "broken", "echo 'no such library' >&2; exit 127", "initdb")
	link := filepath.Join(root, "postgres")
	if err := os.Symlink(linked, link); err != nil {
		t.Fatal(err)
	}
	machine := Machine{
		Getenv: func(string) string { return filepath.Dir(named) },
		LookPath: func(file string) (string, error) {
			if file == "postgres" {
				return link, nil
			}
			return "", exec.ErrNotFound
		},
		Glob: func(pattern string) ([]string, error) {
			if strings.HasPrefix(pattern, "/usr/lib/postgresql/") {
				return []string{named, linked, old, lone, broken}, nil
			}
			return nil, nil
		},
	}

	found, err := machine.FindPostgres(t.Context(), Account{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Installation{{named, 15}, {linked, 18}}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}

	machine.Getenv = func(string) string { return filepath.Dir(old) }
	machine.LookPath = func(string) (string, error) { return "", exec.ErrNotFound }
	machine.Glob = func(string) ([]string, error) { return []string{lone, broken}, nil }
	_, err = machine.FindPostgres(t.Context(), Account{})
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("got error %v, want a NotFoundError", err)
	}
	for _, why := range []string{
		"$PGBIN: " + old + " is version 14, older than 15", lone + " has no initdb beside it", "no such library",
	} {
		if !strings.Contains(missing.Error(), why) {
			t.Errorf("it does not say %q: %v", why, missing)
		}
	}
}

func TestReachNamesWhatBlocks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(root)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner to be had")
	}
	owner := Account{Name: "owner", UID: stat.Uid, GID: stat.Gid + 1}
	group := Account{Name: "group", UID: stat.Uid + 1, GID: stat.Gid}
	other := Account{Name: "other", UID: stat.Uid + 1, GID: stat.Gid + 1}
	for _, test := range []struct {
		mode  fs.FileMode
		may   []Account
		mayNo []Account
	}{
		{0o700, []Account{owner}, []Account{group, other}},
		{0o710, []Account{owner, group}, []Account{other}},
		{0o711, []Account{owner, group, other}, nil},
		{0o701, []Account{owner, other}, []Account{group}},
	} {
		gate := filepath.Join(root, test.mode.String())
		dir := filepath.Join(gate, "a", "b")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(gate, test.mode); err != nil {
			t.Fatal(err)
		}
		for _, account := range test.may {
			if err := account.Reach(dir); err != nil {
				t.Errorf("mode %v: %v", test.mode, err)
			}
		}
		for _, account := range test.mayNo {
			if err := account.Reach(dir); err == nil || !strings.Contains(err.Error(), "chmod o+x "+gate) {
				t.Errorf("mode %v, %s: got error %v, want one that names %s", test.mode, account.Name, err, gate)
			}
		}
	}
}

// install makes a directory with a postgres that runs the script, and other programs that do nothing.
func install(t *testing.T, root, name, script string, others ...string) string {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range append(others, "postgres") {
		err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755)
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "postgres")
}
