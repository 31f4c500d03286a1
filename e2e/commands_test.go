package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestServeNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1/0", "TIDEMARK_JWT_SECRET": secret}
	for missing := range settings {
		var environment []string
		for name, value := range settings {
			if name != missing {
				environment = append(environment, name+"="+value)
			}
		}
		code, _, stderr := run(t, environment, "serve")
		expect(t, "the exit code without "+missing, code, 1)
		for name := range settings {
			expect(t, "whether "+name+" is named where "+missing+" is missing", strings.Contains(stderr, name), name == missing)
		}
	}
	code, _, stderr := run(t, []string{"DATABASE_URL=" + settings["DATABASE_URL"]}, "work")
	expect(t, "the exit code of work", code, 1)
	if !strings.Contains(stderr, "REDIS_URL") || strings.Contains(stderr, "SECRET") {
		t.Errorf("without Redis, work says %s", stderr)
	}
	_, _, stderr = run(t, nil, "serve")
	for name := range settings {
		if !strings.Contains(stderr, name) {
			t.Errorf("%s is not named where all are missing: %s", name, stderr)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	dir := filepath.Join(t.TempDir(), "data")
	for _, command := range []string{"serve", "work", "dev"} {
		code, _, stderr := run(t, append(newEngines(t).settings(), "TIDEMARK_DATA_DIR="+dir), command, "--listen", address)
		expect(t, "the exit code", code, 1)
		if !strings.Contains(stderr, address) || !strings.Contains(stderr, "address already in use") || !strings.Contains(stderr, "--listen") {
			t.Errorf("%s says %s", command, stderr)
		}
	}
	untouched(t, dir)
}

func TestMigrateByManyAtOnce(t *testing.T) {
	t.Parallel()
	empty := newEngines(t)
	_, name := named(t, empty.database)
	administer(t, empty.database, "DROP DATABASE "+name, "CREATE DATABASE "+name+" TEMPLATE template0")
	dir := filepath.Join(t.TempDir(), "data")

	migrations := make([]*process, 8)
	for i := range migrations {
		migrations[i] = start(t, []string{"DATABASE_URL=" + empty.database, "TIDEMARK_DATA_DIR=" + dir}, "migrate")
	}
	for _, migration := range migrations {
		expect(t, "the exit code", migration.wait(), 0)
	}
	// Only the database that was named is touched, and no engine is started for it.
	untouched(t, dir)
	s := empty.serve(t)
	s.as(1).send(s.group(1, 2), "hello")
}

// untouched checks that a data directory was not made.
func untouched(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); !os.IsNotExist(err) {
		t.Errorf("%s was made, with %v in it", dir, entries)
	}
}

func TestTokenIsAllThatIsPrinted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	settings := []string{"TIDEMARK_JWT_SECRET=" + secret}
	type me struct {
		Me struct{ ID, DisplayName string }
	}
	token := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := run(t, settings, append([]string{"token"}, args...)...)
		expect(t, "the exit code", code, 0)
		expect(t, "what is said beside it", stderr, "")
		if !regexp.MustCompile(`^[\w-]+\.[\w-]+\.[\w-]+\n$`).MatchString(stdout) {
			t.Errorf("a token is printed as %q", stdout)
		}
		return strings.TrimSpace(stdout)
	}
	ada := ask[me](s.bearing(token("--user", "7", "--name", "Ada Ö")), `{ me { id displayName } }`, nil).Me
	expect(t, "its user", ada.ID, "7")
	expect(t, "its name", ada.DisplayName, "Ada Ö")
	channel := s.bearing(token("--user", "8", "--role", "service")).create("GROUP", "", 7)
	expect(t, "the service's channel", len(s.as(7).messages(channel, 1)), 0)
	expect(t, "one that is not a user's", s.as(8).do(`query ($id: ID!) { channel(id: $id) { id } }`, vars{"id": channel}).body, `{"data":{"channel":null}}`)

	for _, wrong := range [][]string{
		{}, {"--user", "0"}, {"--user", "x"}, {"--user", "7", "--role", "admin"}, {"--user", "7", "--ttl", "-1h"}, {"--user", "7", "--ttl", "x"},
	} {
		code, stdout, stderr := run(t, settings, append([]string{"token"}, wrong...)...)
		if code == 0 || stderr == "" || strings.Contains(stdout, "eyJ") {
			t.Errorf("token %v ends with %d and says %q", wrong, code, stderr)
		}
	}
}

// A token that no server takes helps nobody: where there is no secret, none is made.
func TestTokenNeedsASecret(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	code, stdout, stderr := run(t, []string{"TIDEMARK_DATA_DIR=" + dir}, "token", "--user", "1")
	expect(t, "the exit code", code, 1)
	expect(t, "what is printed", stdout, "")
	if !strings.Contains(stderr, "TIDEMARK_JWT_SECRET") || !strings.Contains(stderr, "--data-dir") {
		t.Errorf("it says %s", stderr)
	}
	untouched(t, dir)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := run(t, nil, "version")
	expect(t, "the exit code", code, 0)
	if !regexp.MustCompile(`^tidemark \S+\n$`).MatchString(stdout) {
		t.Errorf("the version is printed as %q", stdout)
	}
}

func TestUnknownCommandFails(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"nonsense"}, {"serve", "nonsense"}, {"serve", "--nonsense"}} {
		code, _, stderr := run(t, nil, args...)
		if code == 0 || len(args) > 0 && !strings.Contains(stderr, "nonsense") {
			t.Errorf("%v ends with %d and says %q", args, code, stderr)
		}
	}
}

// TestEveryFlagIsAVariable looks through the help of each command, and has each setting that is not just any text
// refuse what it cannot be.
func TestEveryFlagIsAVariable(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"dev", "serve", "work", "migrate", "token", "replay", "explain", "version"} {
		code, help, _ := run(t, nil, command, "--help")
		expect(t, "the exit code of --help", code, 0)
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-])?([a-z-]+)(=DIR|=URL|=SECRET|=ISS|=AUD|=ORIGIN|=STRING|=":8080"|="127)?`).FindAllStringSubmatch(help, -1) {
			name, isText := flag[1], flag[2] != ""
			if name == "help" {
				continue
			}
			variable := "TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if !strings.Contains(help, "$"+variable) {
				t.Errorf("%s --help does not tell of %s", command, variable)
			}
			if isText {
				continue
			}
			code, _, stderr := run(t, []string{variable + "=nonsense"}, command)
			if code == 0 || !strings.Contains(stderr, "--"+name) {
				t.Errorf("%s with %s=nonsense ends with %d and says %s", command, variable, code, stderr)
			}
		}
	}
}
