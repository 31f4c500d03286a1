// Package e2e tests Tidemark from outside: as processes that are started, asked over HTTP, and stopped or killed, on a
// real Postgres and a real Redis of each test's own. Beside these stands a model test of the domain on Postgres, in the
// files model_*.
//
// A test whose name begins with a letter and two digits holds a case that people reported of other products: R of
// cursors, D of several devices and of what one sends oneself, M of channels that are joined, left, muted and cleaned
// up, L of catching up.
package e2e
