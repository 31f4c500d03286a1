package graph

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tidemark/internal/fault"
)

// origins are the web origins, beside the host's own, whose pages may call.
type origins []string

func (o origins) validate() error {
	for _, origin := range o {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("graph: Origins: %q must be a scheme and a host, such as https://chat.example.com", origin)
		}
	}
	return nil
}

// protect refuses what pages of other origins send, whatever it is, and lets browsers hand the answers to those of
// the allowed ones. A request without an Origin comes from no page of another origin: an app, a backend, or a page
// that the host itself served. No answer is kept anywhere on its way, nor taken for something else than it says.
func (o origins) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		origin := r.Header.Get("Origin")
		allowed := slices.ContainsFunc(o, func(known string) bool { return strings.EqualFold(known, origin) })
		switch {
		case allowed:
			header.Set("Access-Control-Allow-Origin", origin)
		case origin != "" && !sameHost(origin, r.Host):
			refuse(w, r, http.StatusForbidden, fault.New(fault.Forbidden, "pages of this origin may not call here"))
			return
		}
		if allowed && r.Method == http.MethodOptions {
			header.Set("Access-Control-Allow-Methods", callMethods)
			header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			header.Set("Access-Control-Max-Age", "7200")
		}
		next.ServeHTTP(w, r)
	})
}

// sameHost compares hosts alone: behind a proxy that ends TLS, the scheme that the page was loaded with is not known.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
