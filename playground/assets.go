package playground

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed assets
var assetFiles embed.FS

// file is a file of an npm package that the page needs.
type file struct {
	npm       string // the package
	version   string
	path      string // in the package
	integrity string // in the form of the attribute of the same name
}

// files are what the page needs of others, in the order in which it loads them. The package's lock file names the same
// versions; a test holds the two together.
func files() []file {
	return []file{
		{
			"graphiql", "4.1.2", "graphiql.min.css",
			"sha384-1el1QShFBnnXTx9x/Cprg82hZWKt0ry29OAYIXt05swbi0KcZDFoj0CWguMpopJr",
		},
		{
			"react", "18.2.0", "umd/react.production.min.js",
			"sha384-tMH8h3BGESGckSAVGZ82T9n90ztNXxvdwvdM6UoR56cYcf+0iGXBliJ29D+wZ/x8",
		},
		{
			"react-dom", "18.2.0", "umd/react-dom.production.min.js",
			"sha384-bm7MnzvK++ykSwVJ2tynSE5TRdN+xL418osEVF2DE/L/gfWHj91J2Sphe582B1Bh",
		},
		{
			"graphiql", "4.1.2", "graphiql.min.js",
			"sha384-9XdHu7ajgGJziD4J1zNBKQ842Q/+zZfDv+ib1eMhZWBH6hPAs806x+Jbcf0yNO6B",
		},
	}
}

func (f file) name() string { return path.Base(f.path) }

func (f file) cdn() string {
	return "https://cdn.jsdelivr.net/npm/" + f.npm + "@" + f.version + "/" + f.path
}

// builtIn are the files that were there when this was built.
func builtIn() fs.FS { return must(fs.Sub(assetFiles, "assets")) }
