// Package embedded gives a first run its Postgres and its Redis, so that Tidemark starts where nothing is configured.
//
// # Choice
//
// For each engine the first of these that there is: the URL that was given; the programs on this machine; for Postgres
// those that npm fetches; for Redis a stand-in inside this process. The log says which one it became. Where there is
// none, the error says where it was looked for and what to do.
//
// # Ownership
//
// A data directory has at most one owner: the process that holds the lock on owner.lock. The kernel gives it up for
// a process that dies, however it dies. The owner runs the engines and writes engines.json; every other process reads
// that file and uses the same engines.
//
//	          lock taken                  engines answer
//	Open ────────────────▶ owner ────────────────────────▶ engines.json written and locked
//	  │                                                                 │
//	  │ lock held by another                                            │ read by others while locked
//	  └──────────▶ waiting ─────────────────────────────────────────────┴─▶ attached
//
// engines.json counts only while its writer holds a lock on it, so what a dead owner has left is never taken for a
// running one. It is kept, for the next owner to listen on the same ports.
//
// # Guarantees
//
//   - Processes that open one data directory at the same time all get the same engines.
//   - What was committed to Postgres is there at the next start. Redis starts empty.
//   - An engine that dies while its owner lives is started again, on the same port.
//   - Close ends what was started here, and nothing else: attached processes stop nothing. It returns when all is gone.
//   - On Linux the engines end with their owner even when that is killed. Elsewhere the next owner ends them first.
//
// When an owner ends, attached processes are left with the URLs of engines that are gone. They do not take over; the
// next owner has the same ports.
//
// # The data directory
//
//	owner.lock              held by the owner
//	engines.json            URLs and process ids of the engines
//	jwt-secret              the secret that Secret makes
//	postgres-15/            a cluster for each major version of Postgres
//	npm/                    Postgres's programs, where npm fetched them
//	redis/                  Redis's working directory, which holds no data
//	postgres.log redis.log  what the engines say
//
// The engines let in whoever can connect to 127.0.0.1. They are for a developer's machine, not for production.
package embedded
