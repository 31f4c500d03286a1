package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"tidemark/internal/embedded/engine"
)

// startPostgres runs a Postgres on the data directory's cluster, on the last port if that is free.
func (o *owner) startPostgres(opening, running context.Context, lastPort int) (url string, err error) {
	account, err := engine.AccountFor("postgres", "nobody")
	if err != nil {
		return "", err
	}
	installation, err := o.choosePostgres(opening, account)
	if err != nil {
		return "", err
	}
	server := &engine.Postgres{
		Installation:  installation,
		Dir:           o.clusterOf(installation.Major),
		Log:           filepath.Join(o.dir, "postgres.log"),
		PreferredPort: lastPort,
		Account:       account,
	}
	if err := server.Init(opening); err != nil {
		return "", err
	}
	process, err := server.Start(opening)
	if err != nil {
		return "", err
	}
	url = server.URL(engine.Database)
	o.log.Info("Postgres: started", "program", installation.Server, "data", server.Dir, "url", url)
	at := &endpoint{URL: url, PID: process.PID()}
	o.mu.Lock()
	o.record.Postgres = at
	o.mu.Unlock()
	o.watch(running, "Postgres", process, server.Start, at)
	return url, nil
}

// choosePostgres prefers an installation that has a cluster here already, so that data do not vanish from sight when
// another version is installed later.
func (o *owner) choosePostgres(ctx context.Context, account engine.Account) (engine.Installation, error) {
	npm := engine.NPM{Dir: filepath.Join(o.dir, "npm"), Account: account}
	found, err := o.machine.FindPostgres(ctx, account)
	if installation, ok := npm.Installed(ctx); ok {
		found = append(found, installation)
	}
	if len(found) == 0 {
		return o.fetchPostgres(ctx, npm, err)
	}
	for _, installation := range found {
		if _, err := os.Stat(o.clusterOf(installation.Major)); err == nil {
			return installation, nil
		}
	}
	if others, _ := filepath.Glob(filepath.Join(o.dir, "postgres-[0-9][0-9]")); len(others) > 0 {
		o.log.Warn("Postgres: the data here are of versions that this machine has no programs for; starting with none",
			"data", others, "version", found[0].Major)
	}
	return found[0], nil
}

// fetchPostgres has npm install the programs. Where that fails too, it adds so to why there are no others.
func (o *owner) fetchPostgres(ctx context.Context, npm engine.NPM, cause error) (engine.Installation, error) {
	var missing *engine.NotFoundError
	if !errors.As(cause, &missing) {
		return engine.Installation{}, cause
	}
	missing.Remedy += " Or install npm, to have them fetched. Or give the URL of a running server."
	program, ok := o.machine.FindNPM()
	if !ok {
		missing.Tried = append(missing.Tried, "npm on PATH: nothing")
		return engine.Installation{}, missing
	}
	o.log.Info("Postgres: none on this machine, fetching its programs with npm, some 60 MB",
		"package", npm.Package(), "into", npm.Dir)
	installation, err := npm.Install(ctx, program)
	if err != nil {
		missing.Tried = append(missing.Tried, err.Error())
		return engine.Installation{}, missing
	}
	return installation, nil
}

func (o *owner) clusterOf(major int) string {
	return filepath.Join(o.dir, "postgres-"+strconv.Itoa(major))
}
