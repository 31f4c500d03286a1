package playground

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"tidemark/graph/connection"
	"tidemark/graph/generated"
	"tidemark/internal/channel"
	"tidemark/internal/readstate"
)

// fakeAPI answers for badges, and for nothing else: what it lacks is a nil interface.
type fakeAPI struct{ generated.ResolverRoot }

func (fakeAPI) Query() generated.QueryResolver { return fakeQuery{} }
func (fakeAPI) Badge() generated.BadgeResolver { return fakeBadges{} }

type fakeQuery struct{ generated.QueryResolver }

func (fakeQuery) Badges(context.Context, bool, bool, int, *string) (connection.Badges, error) {
	return connection.NewBadges(readstate.Page{
		Badges: []readstate.Badge{
			{UserID: 1, ChannelID: 101, HeadVersion: 9, HighWaterSeq: 131, LastReadSeq: 4, ReadEpoch: 1, Countable: 127, Naming: 2},
			{UserID: 1, ChannelID: 102, HeadVersion: 3, HighWaterSeq: 3, LastReadSeq: 3},
		},
		Total:      readstate.Total{Countable: 127, Naming: 2, UnreadChannels: 1},
		StoreEpoch: "fake",
	}, false), nil
}

type fakeBadges struct{}

func (fakeBadges) Channel(_ context.Context, badges []*readstate.Badge) ([]channel.Channel, error) {
	channels := make([]channel.Channel, len(badges))
	for i, badge := range badges {
		channels[i] = channel.Channel{ID: badge.ChannelID, Kind: channel.Group, Name: "channel " + badge.ChannelID.String()}
	}
	return channels, nil
}

// sight is what browser.mjs reports.
type sight struct {
	External, Complaints, Tabs, TabsAfterReload []string
	Query, Variables, Headers                   string
	Answer, AnswerAfterReload                   string
}

// TestInABrowser opens the page as a person does. Set TIDEMARK_SCREENSHOT to the name of a PNG file to see it.
func TestInABrowser(t *testing.T) {
	const token = "the-token-of-the-test"
	api := handler.New(generated.NewExecutableSchema(generated.Config{Resolvers: fakeAPI{}}))
	api.AddTransport(transport.POST{})
	api.Use(extension.Introspection{})
	mux := http.NewServeMux()
	mux.Handle("/", Handler(Config{Endpoint: "/graphql", SubscriptionEndpoint: "/graphql", Token: token}))
	mux.HandleFunc("/graphql", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	saw := browse(t, server.URL)
	if len(saw.External) > 0 {
		t.Errorf("the page left this machine for:\n%s\n%s", strings.Join(saw.External, "\n"), needBuild)
	}
	if len(saw.Complaints) > 0 {
		t.Errorf("the browser complained:\n%s", strings.Join(saw.Complaints, "\n"))
	}
	var want []string
	for _, example := range examples() {
		want = append(want, example.Name)
	}
	if !slices.Equal(saw.Tabs, want) || !slices.Equal(saw.TabsAfterReload, want) {
		t.Errorf("got tabs %v, after a reload %v, want %v", saw.Tabs, saw.TabsAfterReload, want)
	}
	badges := examples()[0]
	if saw.Query != badges.Query || saw.Variables != badges.Variables {
		t.Errorf("the tab holds %s\n%s", saw.Query, saw.Variables)
	}
	if want := pretty(map[string]string{"Authorization": "Bearer " + token}); saw.Headers != want {
		t.Errorf("the headers editor holds %s, want %s", saw.Headers, want)
	}
	if !strings.Contains(saw.Answer, `"label": "99+"`) || saw.AnswerAfterReload != saw.Answer {
		t.Errorf("the page shows %s\nafter a reload %s", saw.Answer, saw.AnswerAfterReload)
	}
}

// browse runs browser.mjs, and everything it starts, to the end.
func browse(t *testing.T, url string) sight {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v\nInstall Node 20 or newer.", err)
	}
	if _, err := os.Stat("assets-src/node_modules/playwright-core"); err != nil {
		t.Fatalf("%v\nRun `npm ci` in playground/assets-src, or `make setup`.", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "browser.mjs", url, findChromium(t), os.Getenv("TIDEMARK_SCREENSHOT"))
	cmd.Dir = "assets-src"
	cmd.WaitDelay = 5 * time.Second
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("browser.mjs: %v\n%s", err, complaint.String())
	}
	var saw sight
	if err := json.Unmarshal(out, &saw); err != nil {
		t.Fatalf("browser.mjs printed %s: %v", out, err)
	}
	return saw
}

func findChromium(t *testing.T) string {
	t.Helper()
	candidates := []string{
		os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome-stable", "google-chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	}
	for _, candidate := range candidates {
		if found, err := exec.LookPath(candidate); err == nil {
			return found
		}
	}
	t.Fatal("no Chromium to test the playground with. Install it (Debian: apt install chromium; macOS: brew install " +
		"--cask chromium), or set CHROMIUM to the path of one.")
	return ""
}
