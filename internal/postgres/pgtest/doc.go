// Package pgtest gives tests a real Postgres. Where the machine has none the tests fail; they are never skipped.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Each test process has one server, started when a test first asks for a database and stopped by Main. It is migrated
// once; NewDatabase makes copies of that, so tests share nothing but the processor and may run in parallel. A test that
// has to kill its Postgres takes one of its own with NewServer.
//
// The servers do without fsync: what was committed outlives a killed server, but not the machine's loss of power.
package pgtest
