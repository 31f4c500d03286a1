// Package postgres keeps what must last: people, channels, messages, cursors and what devices have received. Its
// Store implements the stores that the domain packages declare.
//
// Every change is one transaction, or one statement; what it is looked up with before or after may be others. A row's lock is taken in one order everywhere, first channels'
// heads, then read states, each by ascending key, so that no two calls wait for one another. Errors of the driver are
// translated here and nowhere else: a part that is away is UNAVAILABLE, and what is left is a fault of ours.
package postgres
