package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"tidemark/internal/auth"
	"tidemark/internal/embedded"
	"tidemark/migrations"
	"tidemark/web"
)

type devCommand struct {
	dataDir `embed:""`
	config  `embed:""`

	Demo bool `default:"true" negatable:"" help:"Make a few people, channels and messages to look at, where there are none."`
}

// Run starts the engines and serves until the context ends.
func (c *devCommand) Run(ctx context.Context) (err error) {
	if err := loopback(c.Listen); err != nil {
		return err
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	listener, err := c.listener(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	engines, err := embedded.Open(ctx, embedded.Config{
		DataDir: c.DataDir, PostgresURL: c.DatabaseURL, RedisURL: c.RedisURL, Logger: log,
	})
	if err != nil {
		return err
	}
	defer closing(engines.Close, &err)
	c.DatabaseURL, c.RedisURL = engines.PostgresURL(), engines.RedisURL()
	if err := migrations.Up(ctx, c.DatabaseURL); err != nil {
		return err
	}
	trusted := c.trusted(log)
	if c.JWKSURL == "" {
		if trusted, err = c.signing(c.DataDir, embedded.Secret); err != nil {
			return err
		}
		trusted.Logger = log
		if err := c.signForPages(trusted); err != nil {
			return err
		}
	}
	server, err := newServer(ctx, c.config, trusted, log)
	if err != nil {
		return err
	}
	if c.Demo {
		if err := server.makeDemo(ctx); err != nil {
			server.close(ctx)
			return fmt.Errorf("make demo data: %w", err)
		}
	}
	if err := c.greet(os.Stdout, listener.Addr(), trusted, engines); err != nil {
		server.close(ctx)
		return err
	}
	server.handler = fromThisMachine(server.handler)
	return server.run(ctx, listener)
}

// signForPages makes the tokens that the pages of a developer's machine come with.
func (c *devCommand) signForPages(trusted auth.Config) (err error) {
	if c.inspector.Token, err = auth.Sign(trusted, demoSupport, demoTokenTTL); err != nil {
		return err
	}
	for _, viewer := range demoPeople {
		token, err := auth.Sign(trusted, viewer, demoTokenTTL)
		if err != nil {
			return err
		}
		if c.Demo {
			c.demo.People = append(c.demo.People, web.Person{ID: viewer.ID.String(), Name: viewer.Name, Token: token})
		}
		if viewer == demoPeople[0] {
			c.playgroundToken = token
		}
	}
	return nil
}

// fromThisMachine refuses requests that name another host than this machine: those of a web page whose name was made
// to lead here, to have the playground's token.
func fromThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(r.Host); err == nil {
			host = name
		}
		if !isLoopback(host) {
			http.Error(w, "dev answers to localhost alone", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// greet tells where to look.
func (c *devCommand) greet(w io.Writer, address net.Addr, trusted auth.Config, engines *embedded.Engines) error {
	base := "http://" + address.String()
	var text strings.Builder
	fmt.Fprintf(&text, "\nTidemark %s is running.\n\n", version())
	if c.Playground {
		fmt.Fprintf(&text, "  playground  %s/\n", base)
	}
	if len(c.demo.People) > 0 {
		fmt.Fprintf(&text, "  demo        %s/demo\n", base)
	}
	if c.Inspector {
		fmt.Fprintf(&text, "  inspector   %s/inspect\n", base)
	}
	fmt.Fprintf(&text, "  GraphQL     %s/graphql\n  one call    %s/me\n", base, base)
	fmt.Fprintf(&text, "  health      %s/healthz  %s/readyz  %s/metrics\n", base, base, base)
	fmt.Fprintf(&text, "  Postgres    psql '%s'\n  Redis       redis-cli -u %s\n", redacted(engines.PostgresURL()), redacted(engines.RedisURL()))
	if trusted.Secret != "" && c.Demo {
		fmt.Fprintf(&text, "\nTokens, good for %d days:\n\n", int(demoTokenTTL.Hours()/24))
		for _, viewer := range demoPeople {
			token, err := auth.Sign(trusted, viewer, demoTokenTTL)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "  %-4s (%s)  %s\n", viewer.Name, viewer.ID, token)
		}
		token, err := auth.Sign(trusted, demoPeople[0], demoTokenTTL)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "\nAsk for %s's badges:\n\n  curl -s %s/graphql -H 'Content-Type: application/json' \\\n    -H 'Authorization: Bearer %s' \\\n    -d '%s'\n",
			demoPeople[0].Name, base, token, `{"query":"{ badges { nodes { channel { name } unread { label } mentions { label } } total { unread { label } } } }"}`)
	}
	if trusted.Secret != "" {
		text.WriteString("\nMore tokens: " + os.Args[0] + " token --user 7 --name Gil")
		if c.DataDir != "" {
			text.WriteString(" --data-dir " + c.DataDir)
		}
		text.WriteString("\n")
	}
	text.WriteString("\nStop with Ctrl-C. A second start finds everything again.\n\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// loopback refuses an address that others can reach: the engines of a first run trust whoever is on this machine.
func loopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen must be HOST:PORT: %w", err)
	}
	if isLoopback(host) {
		return nil
	}
	return fmt.Errorf("--listen must be a loopback address such as 127.0.0.1:8080, not %q: dev is for this machine only", listen)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// redacted is a URL without its password.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(as given)"
	}
	return u.Redacted()
}
