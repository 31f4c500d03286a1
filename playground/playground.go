// Package playground serves GraphiQL, with an example for every operation of the schema.
//
// It needs no network: the files of GraphiQL and React are embedded, where the build found them in assets/. Where it
// did not, the page takes the same files from a CDN. The browser checks both against the hashes of files.
//
// The page holds a token, so it is for a developer's machine. It may not be framed, kept by a cache, or run a script
// that is not its own.
package playground

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// Config says where the playground sends what is typed into it.
type Config struct {
	// Endpoint answers GraphQL over HTTP: a path on the playground's own server, or a URL.
	Endpoint string
	// SubscriptionEndpoint answers GraphQL over WebSocket, likewise. Without it the playground has no subscriptions.
	SubscriptionEndpoint string
	// Token is the bearer token that the headers editor holds. Without it the editor asks for one.
	Token string
}

// Handler returns the playground, to be mounted on a path that ends in a slash. It answers for that path and for
// assets/ below it, and leaves the rest not found.
func Handler(config Config) http.Handler {
	return newHandler(config, builtIn())
}

// newHandler takes those of files that built does not have from the CDN.
func newHandler(config Config, built fs.FS) http.Handler {
	own := must(fs.Sub(pageFiles, "page"))
	page := template.Must(template.New("index.html").ParseFS(own, "index.html"))
	mux := http.NewServeMux()
	serve := func(from fs.FS, name string) string {
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return ""
		}
		location := "assets/" + name
		mux.Handle("GET /"+location, asset(name, body))
		return location
	}

	data := pageData{
		Style:    link{URL: serve(own, "playground.css")},
		Script:   link{URL: serve(own, "playground.js")},
		Settings: newSettings(config),
	}
	for _, file := range files() {
		l := link{URL: serve(built, file.name()), Integrity: file.integrity}
		if l.URL == "" {
			l.URL = file.cdn()
		}
		if path.Ext(file.path) == ".css" {
			data.Styles = append(data.Styles, l)
		} else {
			data.Scripts = append(data.Scripts, l)
		}
	}
	policy := contentPolicy(config)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		data := data
		data.Nonce = rand.Text()
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", strings.ReplaceAll(policy, noncePlace, data.Nonce))
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		_ = page.Execute(w, data) // fails only where the client is gone
	})
	return mux
}

// pageData is what index.html is made from.
type pageData struct {
	Nonce           string
	Styles, Scripts []link
	Style, Script   link
	Settings        settings
}

// link is a file that the page loads.
type link struct{ URL, Integrity string }

// settings is what playground.js reads.
type settings struct {
	Endpoint             string    `json:"endpoint"`
	SubscriptionEndpoint string    `json:"subscriptionEndpoint,omitempty"`
	Headers              string    `json:"headers"`
	Examples             []example `json:"examples"`
	// Edition changes with the examples: what a browser remembers of other ones is of no use.
	Edition string `json:"edition"`
}

func newSettings(config Config) settings {
	token := config.Token
	if token == "" {
		token = "<a token>"
	}
	s := settings{
		Endpoint:             config.Endpoint,
		SubscriptionEndpoint: config.SubscriptionEndpoint,
		Headers:              pretty(map[string]string{"Authorization": "Bearer " + token}),
		Examples:             examples(),
	}
	s.Edition = fingerprint([]byte(pretty(s.Examples)))
	return s
}

const noncePlace = "{nonce}"

// contentPolicy lets the page run its own scripts and call the endpoints, and nothing else.
func contentPolicy(config Config) string {
	connect := []string{"'self'"}
	for _, endpoint := range []string{config.Endpoint, config.SubscriptionEndpoint} {
		if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
			connect = append(connect, u.Scheme+"://"+u.Host)
		}
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'nonce-" + noncePlace + "'",
		"style-src 'nonce-" + noncePlace + "'",
		"connect-src " + strings.Join(connect, " "),
		"img-src data:",
		"font-src data:",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	}, "; ")
}

// asset serves a file, which browsers ask for again only to hear that it has not changed.
func asset(name string, body []byte) http.Handler {
	contentType := mime.TypeByExtension(path.Ext(name))
	tag := `"` + fingerprint(body) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", contentType)
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", tag)
		header.Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}

func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func pretty(v any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// must is for what is embedded in the program, and cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
