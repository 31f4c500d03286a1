// Package engine finds Postgres and Redis on this machine and runs them as children of this process. It is the
// layer below package embedded, which decides whose they are and keeps them up, and below pgtest and redistest,
// which give them to tests.
//
// What holds for every engine started here:
//
//   - It listens on 127.0.0.1 only, and on no Unix socket. Whoever may connect there is let in without a password.
//   - It never runs as root: where this process is root, the engine runs as an unprivileged account, which then
//     owns its directory.
//   - Start returns when the engine answers, and when it is known to be ours and not another one that took the port.
//   - On Linux it ends when this process does, however that ends. Elsewhere, and where that failed, the next Start
//     on the same directory stops what is left over.
//   - It sees nothing of this process's environment but PATH.
//
// A Process is waited for by a goroutine that ends with it, so whoever stops or kills it leaves none behind.
package engine
