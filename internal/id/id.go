// Package id holds the identifiers that every other package passes around. Each is a type of its own, so that a
// channel cannot be handed over as a person. On the wire they are decimal strings of positive 64-bit integers.
package id

import (
	"errors"
	"strconv"
)

// User identifies a person, by the number that the chat product knows them under.
type User int64

// Channel identifies a channel.
type Channel int64

// Message identifies a message among all messages of all channels.
type Message int64

// Device names one installation of an app. It is made by the client at install and kept with its message store.
type Device string

// MaxDeviceLength bounds a device's id, in characters.
const MaxDeviceLength = 128

var errNotAnID = errors.New("not the decimal form of a positive 64-bit integer")

// ParseUser reads the decimal form. Only the canonical form is taken: no sign, no leading zero, no blank.
func ParseUser(s string) (User, error) {
	n, err := parse(s)
	return User(n), err
}

// ParseChannel reads the decimal form, as ParseUser does.
func ParseChannel(s string) (Channel, error) {
	n, err := parse(s)
	return Channel(n), err
}

// ParseMessage reads the decimal form, as ParseUser does.
func ParseMessage(s string) (Message, error) {
	n, err := parse(s)
	return Message(n), err
}

func (u User) String() string    { return strconv.FormatInt(int64(u), 10) }
func (c Channel) String() string { return strconv.FormatInt(int64(c), 10) }
func (m Message) String() string { return strconv.FormatInt(int64(m), 10) }

func parse(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != s {
		return 0, errNotAnID
	}
	return n, nil
}

// Seq is a message's position in its channel, from 1 without a gap; 0 stands before the first. Cursors are positions
// too. It stays within MaxSeq, so that a JavaScript number holds it exactly.
type Seq int64

// MaxSeq is the largest whole number that every JSON client can hold, 2^53-1.
const MaxSeq Seq = 1<<53 - 1
