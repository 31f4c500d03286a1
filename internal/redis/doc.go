// Package redis is Tidemark's side of Redis: how it connects, and everything that it keeps there.
//
// Nothing in Redis is the only copy of anything. Any key may vanish or be evicted, and the server may be away, at
// any moment; then a call fails in about a second at most, and the domain that asked goes on without.
//
// Keys are kind:{id}. The braces are part of the name: in a cluster they keep what belongs together in one place.
//
//	ratelimit:{user}   string: when the person's allowance is whole again, in microseconds; expires then
//
// Everything that reads and then writes is one Lua script, in a file of its own.
package redis
