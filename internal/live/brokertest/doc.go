// Package brokertest holds what every live.Broker has to do, for the tests of each.
package brokertest
