// Package graph is the GraphQL edge: it reads arguments, calls the domain, and writes what comes back. It decides
// nothing.
package graph
