package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Account is who an engine runs as. The zero Account is the user that this process runs as.
type Account struct {
	Name string
	UID  uint32
	GID  uint32
}

// AccountFor returns the first of the named accounts that this machine has, where this process is root. For any
// other user it returns the zero Account: only root can, and has to, be somebody else.
func AccountFor(names ...string) (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return Account{}, fmt.Errorf("account %s: %w", name, err)
		}
		return Account{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
	}
	return Account{}, fmt.Errorf("root must not run an engine, and there is none of the accounts %s to run it as",
		strings.Join(names, ", "))
}

// Reach checks that the account can get to a directory. Where it cannot, the error names the directory on the way
// that stops it.
func (a Account) Reach(dir string) error {
	if a == (Account{}) {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, step := range stepsTo(resolved) {
		info, err := os.Stat(step)
		if err != nil {
			return err
		}
		if !a.maySearch(info) {
			return fmt.Errorf("user %s cannot get to %s: directory %s (mode %04o) lets them not pass; "+
				"use a data directory elsewhere, or chmod o+x %[3]s", a.Name, dir, step, info.Mode().Perm())
		}
	}
	return nil
}

// TempDir makes a temporary directory that belongs to the account, with a name like os.MkdirTemp's. The caller
// removes it.
func (a Account) TempDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(a.own(dir), a.Reach(dir))
}

// stepsTo returns an absolute directory and those above it, from the root down.
func stepsTo(dir string) []string {
	steps := []string{dir}
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		steps = append(steps, parent)
	}
	slices.Reverse(steps)
	return steps
}

// maySearch goes by the permission bits. The account has no supplementary groups: launch takes them away.
func (a Account) maySearch(dir fs.FileInfo) bool {
	owner, ok := dir.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return true
	case owner.Uid == a.UID:
		return dir.Mode().Perm()&0o100 != 0
	case owner.Gid == a.GID:
		return dir.Mode().Perm()&0o010 != 0
	default:
		return dir.Mode().Perm()&0o001 != 0
	}
}

// own gives a directory and all in it to the account. It looks no further where the directory is theirs already.
func (a Account) own(dir string) error {
	if a == (Account{}) {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == a.UID {
		return nil
	}
	root, err := os.OpenRoot(dir) // what is in there was another account's, and must not lead us out of it
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		return root.Lchown(path, int(a.UID), int(a.GID))
	})
	if err == nil {
		err = root.Chown(".", int(a.UID), int(a.GID)) // last, so that a walk that was cut short is done again
	}
	return errors.Join(err, root.Close())
}

func (a Account) credential() *syscall.Credential {
	if a == (Account{}) {
		return nil
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID}
}
