package playground

import (
	"embed"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed examples
var exampleFiles embed.FS

// example is one tab: an operation, and its variables as JSON.
type example struct {
	Name      string `json:"name"`
	Query     string `json:"query"`
	Variables string `json:"variables,omitempty"`
}

// examples returns the examples in the order of their files: NN-name.graphql, and NN-name.json where it has variables.
func examples() []example {
	named := regexp.MustCompile(`(?m)^(?:query|mutation|subscription) (\w+)`)
	var all []example
	for _, name := range must(fs.Glob(exampleFiles, "examples/*.graphql")) {
		query := must(exampleFiles.ReadFile(name))
		variables, err := exampleFiles.ReadFile(strings.TrimSuffix(name, path.Ext(name)) + ".json")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			panic(err)
		}
		all = append(all, example{
			Name:      string(named.FindSubmatch(query)[1]),
			Query:     strings.TrimSpace(string(query)),
			Variables: strings.TrimSpace(string(variables)),
		})
	}
	return all
}
