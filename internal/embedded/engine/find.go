package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The oldest major versions that Tidemark runs on.
const (
	OldestPostgres = 15
	OldestRedis    = 7
)

// Machine is where engines are looked for. A nil function asks the machine that we run on.
type Machine struct {
	Getenv   func(key string) string
	LookPath func(file string) (string, error)
	Glob     func(pattern string) ([]string, error)
}

// Installation is an engine's programs on this machine.
type Installation struct {
	// Server is the path of the server's program. Its tools are beside it.
	Server string
	Major  int
}

func (i Installation) tool(name string) string { return filepath.Join(filepath.Dir(i.Server), name) }

// NotFoundError says that a machine has no usable engine: where it was looked for, and what to do about it.
type NotFoundError struct {
	Engine string
	Tried  []string
	Remedy string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s to be had. Looked at:\n  %s\n%s", e.Engine, strings.Join(e.Tried, "\n  "), e.Remedy)
}

// place is somewhere that an engine is commonly installed: a name for people, and the programs found there.
type place struct {
	name    string
	servers []string
}

// FindPostgres returns the installations that the account can run, the preferred one first. Where there is none, the
// error is a *NotFoundError.
func (m Machine) FindPostgres(ctx context.Context, account Account) ([]Installation, error) {
	found, tried := examine(ctx, m.postgresPlaces(ctx), account, checkPostgres)
	if len(found) == 0 {
		return nil, &NotFoundError{
			Engine: "Postgres",
			Tried:  tried,
			Remedy: fmt.Sprintf("Install Postgres %d or newer (Debian, Ubuntu: apt install postgresql; macOS: brew install "+
				"postgresql@17), or set PGBIN to the directory of its programs.", OldestPostgres),
		}
	}
	return found, nil
}

// FindRedis returns the servers, Redis or Valkey, that the account can run, the preferred one first. Where there is
// none, the error is a *NotFoundError.
func (m Machine) FindRedis(ctx context.Context, account Account) ([]Installation, error) {
	found, tried := examine(ctx, m.redisPlaces(), account, checkRedis)
	if len(found) == 0 {
		return nil, &NotFoundError{
			Engine: "Redis",
			Tried:  tried,
			Remedy: fmt.Sprintf("Install Redis %d or newer (Debian, Ubuntu: apt install redis-server; macOS: brew install "+
				"redis), or set REDISBIN to the directory of redis-server.", OldestRedis),
		}
	}
	return found, nil
}

func (m Machine) postgresPlaces(ctx context.Context) []place {
	places := []place{m.named("$PGBIN", "postgres"), m.onPath("postgres"), m.pgConfig(ctx)}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		places = append(places, m.matching(pattern, "postgres"))
	}
	return places
}

func (m Machine) redisPlaces() []place {
	places := []place{m.named("$REDISBIN", "redis-server"), m.onPath("redis-server"), m.onPath("valkey-server")}
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin"} {
		places = append(places, m.matching(dir, "redis-server"))
	}
	return places
}

// named looks in the directory that a variable of the environment names.
func (m Machine) named(variable, server string) place {
	getenv := m.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if dir := getenv(strings.TrimPrefix(variable, "$")); dir != "" {
		return place{variable, []string{filepath.Join(dir, server)}}
	}
	return place{name: variable}
}

// onPath follows links, for the tools that an engine needs are beside the program itself.
func (m Machine) onPath(server string) place {
	name := server + " on PATH"
	path, err := m.lookPath(server)
	if err != nil {
		return place{name: name}
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return place{name, []string{path}}
}

func (m Machine) pgConfig(ctx context.Context) place {
	const name = "pg_config --bindir"
	path, err := m.lookPath("pg_config")
	if err != nil {
		return place{name: name}
	}
	dir, err := exec.CommandContext(ctx, path, "--bindir").Output()
	if err != nil {
		return place{name: name}
	}
	return place{name, []string{filepath.Join(strings.TrimSpace(string(dir)), "postgres")}}
}

// matching looks in the directories that match the pattern, those with the highest version first.
func (m Machine) matching(pattern, server string) place {
	glob := m.Glob
	if glob == nil {
		glob = filepath.Glob
	}
	servers, _ := glob(filepath.Join(pattern, server)) // its only error is a bad pattern
	slices.Sort(servers)
	slices.Reverse(servers)
	return place{pattern, servers}
}

func (m Machine) lookPath(file string) (string, error) {
	if m.LookPath != nil {
		return m.LookPath(file)
	}
	return exec.LookPath(file)
}

// examine tries each program found, as the account that is to run it, and says of each place what came of it.
func examine(ctx context.Context, places []place, account Account,
	check func(context.Context, string, Account) (Installation, error),
) (found []Installation, tried []string) {
	seen := map[string]bool{}
	for _, place := range places {
		if len(place.servers) == 0 {
			tried = append(tried, place.name+": nothing")
		}
		for _, server := range place.servers {
			if seen[server] {
				continue
			}
			seen[server] = true
			installation, err := check(ctx, server, account)
			if err != nil {
				tried = append(tried, fmt.Sprintf("%s: %v", place.name, err))
				continue
			}
			found = append(found, installation)
		}
	}
	return found, tried
}

func checkPostgres(ctx context.Context, server string, account Account) (Installation, error) {
	major, err := version(ctx, server, account, "(PostgreSQL) ")
	if err != nil {
		return Installation{}, err
	}
	if major < OldestPostgres {
		return Installation{}, fmt.Errorf("%s is version %d, older than %d", server, major, OldestPostgres)
	}
	installation := Installation{Server: server, Major: major}
	if _, err := os.Stat(installation.tool("initdb")); err != nil {
		return Installation{}, fmt.Errorf("%s has no initdb beside it", server)
	}
	return installation, nil
}

func checkRedis(ctx context.Context, server string, account Account) (Installation, error) {
	major, err := version(ctx, server, account, "v=")
	if err != nil {
		return Installation{}, err
	}
	if major < OldestRedis {
		return Installation{}, fmt.Errorf("%s is version %d, older than %d", server, major, OldestRedis)
	}
	return Installation{Server: server, Major: major}, nil
}

// version asks a server for its major version: the number after the mark in what --version prints.
func version(ctx context.Context, server string, account Account, mark string) (int, error) {
	cmd := exec.CommandContext(ctx, server, "--version")
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes(account, 0)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		if account.Name != "" {
			err = fmt.Errorf("as user %s: %w", account.Name, err)
		}
		return 0, err
	}
	_, number, _ := strings.Cut(string(out), mark)
	number = number[:len(number)-len(strings.TrimLeft(number, "0123456789"))]
	major, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("%s --version says %q", server, strings.TrimSpace(string(out)))
	}
	return major, nil
}
