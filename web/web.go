// Package web serves two frontends on the API: the demo, in which several devices of several people keep each other right,
// and the inspector, with which support explains a badge. They are clients like any other, and hold no rights of their own:
// what they may see is what their tokens say.
//
// The demo's page holds tokens, so it is for a developer's machine alone. The inspector's asks for one.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed dist
var dist embed.FS

// Person is somebody whose devices the demo shows.
type Person struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Token string `json:"token"`
}

// Settings are what a page reads when it is loaded.
type Settings struct {
	// People are those of the demo.
	People []Person `json:"people,omitempty"`
	// Token is what the inspector begins with. Without one it asks.
	Token string `json:"token,omitempty"`
}

const (
	// place is where the build leaves room for the settings.
	place = `<script type="application/json" id="settings">{}</script>`
	// policy lets a page run what was built in and call this server, and nothing else.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// notBuilt is what a program shows that was built without the pages.
	notBuilt = "The pages are not built in. Build with make, which needs Node 20 or newer and npm.\n"
)

// Demo serves the demo's page.
func Demo(settings Settings) http.Handler { return page("demo.html", settings) }

// Inspector serves the inspector's page.
func Inspector(settings Settings) http.Handler { return page("inspect.html", settings) }

func page(name string, settings Settings) http.Handler {
	body, err := fs.ReadFile(dist, "dist/built/"+name)
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, notBuilt, http.StatusNotFound) })
	}
	told, err := json.Marshal(settings) // <, > and & are escaped, so that nothing in it ends the element
	if err != nil {
		panic(err) // strings always can be written
	}
	body = bytes.Replace(body, []byte(place), []byte(strings.Replace(place, "{}", string(told), 1)), 1)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", policy)
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body) // fails only where the client is gone
	})
}

// Assets serves what the pages load, below /web/.
func Assets() http.Handler {
	mux := http.NewServeMux()
	names, _ := fs.Glob(dist, "dist/built/assets/*") // the pattern is a good one
	for _, name := range names {
		body, err := fs.ReadFile(dist, name)
		if err != nil {
			panic(err) // it is in the program
		}
		mux.Handle("GET /web/assets/"+path.Base(name), asset(name, body))
	}
	return mux
}

// asset serves a file whose name changes with what is in it.
func asset(name string, body []byte) http.Handler {
	contentType := mime.TypeByExtension(path.Ext(name))
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", contentType)
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
		header.Set("ETag", tag)
		header.Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}
