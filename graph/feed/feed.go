// Package feed joins a live stream to the transport that delivers it, with no goroutine between the two.
//
// gqlgen takes what a subscription's resolver yields from a channel, and waits for it: a goroutine for each stream,
// and one more to fill the channel. Here the transport is woken when something waits, moves one value to the channel
// with Take, and only then has it encoded, on a goroutine that lives for just that long. A value is taken as late as
// can be, so what a slow client is sent is the newest there is.
package feed

import (
	"context"
	"errors"
	"sync"
)

// Stream is what somebody hears about as long as they listen.
type Stream[T any] interface {
	// Next takes what waits, and reports whether there was something. It does not block. After an error nothing more
	// will come.
	Next() (value T, some bool, err error)
	// Notify has wake called whenever something begins to wait, and at once where something does. wake must not block.
	// It is called once, before Next.
	Notify(wake func())
	// Again says that what Next took last could not be delivered: it waits again.
	Again()
	// Close ends the stream. It may be called more than once, and at the same time as all others.
	Close()
}

// Feed is a transport's end of the stream that one operation opens.
type Feed struct {
	mu     sync.Mutex
	closed bool
	stream source
}

// Encoder writes the data of the response that tells a value, as the executor would, and without asking anybody.
type Encoder[T any] func(value T) []byte

// source is a Stream of any type, with the channel that gqlgen takes its values from.
type source interface {
	Notify(wake func())
	Again()
	Close()
	take() (data []byte, some bool, err error)
}

type feedKey struct{}

var errSecondStream = errors.New("an operation opened a second stream")

// NewContext returns a context whose operation is to open its stream on the feed.
func NewContext(ctx context.Context, f *Feed) context.Context {
	return context.WithValue(ctx, feedKey{}, f)
}

// Open is for resolvers: it hands a stream to the transport, and returns the channel to give to gqlgen. With an encoder,
// values go to the transport past the executor. A transport that has no feed is served as gqlgen has it, by a goroutine
// that ends with ctx.
func Open[T any](ctx context.Context, stream Stream[T], encode Encoder[T]) (<-chan T, error) {
	f, ok := ctx.Value(feedKey{}).(*Feed)
	if !ok {
		values := make(chan T)
		go pump(ctx, stream, values)
		return values, nil
	}
	opened := &channelled[T]{Stream: stream, values: make(chan T, 1), encode: encode}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.stream != nil:
		stream.Close()
		return nil, errSecondStream
	case f.closed:
		stream.Close()
	}
	f.stream = opened
	return opened.values, nil
}

// Opened reports whether the operation has opened a stream.
func (f *Feed) Opened() bool { return f.get() != nil }

// Notify has wake called whenever there is something to take, and at once where there is. It is for opened feeds.
func (f *Feed) Notify(wake func()) { f.get().Notify(wake) }

// Take takes what waits, if something does: as the data of a response, or else moved to where the operation's response
// handler finds it without waiting. That is to be called once then, before the next Take. After an error nothing more
// will come.
func (f *Feed) Take() (data []byte, some bool, err error) { return f.get().take() }

// Again puts back what was taken last.
func (f *Feed) Again() { f.get().Again() }

// Close ends the stream, if one was opened or is about to be.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.stream != nil {
		f.stream.Close()
	}
}

func (f *Feed) get() source {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stream
}

// Opened reports whether the operation of a context has opened its stream.
func Opened(ctx context.Context) bool {
	f, ok := ctx.Value(feedKey{}).(*Feed)
	return ok && f.Opened()
}

type channelled[T any] struct {
	Stream[T]
	values chan T
	encode Encoder[T] // nil: the executor does it
}

func (c *channelled[T]) take() (data []byte, some bool, err error) {
	value, some, err := c.Next()
	switch {
	case !some:
		return nil, false, err
	case c.encode != nil:
		return c.encode(value), true, nil
	default:
		c.values <- value
		return nil, true, nil
	}
}

// pump serves a stream to whoever reads from values, until ctx or the stream ends.
func pump[T any](ctx context.Context, stream Stream[T], values chan<- T) {
	defer close(values)
	defer stream.Close()
	woken := make(chan struct{}, 1)
	stream.Notify(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	for {
		value, some, err := stream.Next()
		switch {
		case err != nil:
			return
		case some:
			select {
			case values <- value:
			case <-ctx.Done():
				return
			}
		default:
			select {
			case <-woken:
			case <-ctx.Done():
				return
			}
		}
	}
}
