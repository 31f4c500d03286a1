package redis

// NewClient is Open for tests that bring their own dialer.
var NewClient = newClient
