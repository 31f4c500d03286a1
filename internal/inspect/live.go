package inspect

import (
	"context"
	"fmt"
	"log/slog"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// Live tells of what changes for somebody.
type Live interface {
	Badges(ctx context.Context, user id.User, watch live.Watch) (*live.BadgeStream, error)
	Icon(ctx context.Context, user id.User, viewing bool) (*live.IconStream, error)
}

// Change says that something of a person's numbers is another than before.
type Change struct {
	UserID     id.User
	ChannelIDs []id.Channel // whose badges changed, came or went
}

// Watch tells whenever a person's numbers change, for the support role. What is told is that they did: who wants to see
// them asks. The first change is there at once.
func (i *Inspector) Watch(ctx context.Context, viewer person.Viewer, user id.User) (*Stream, error) {
	if err := i.enter(ctx, viewer, "watch a person", slog.Int64("user", int64(user))); err != nil {
		return nil, err
	}
	badges, err := i.config.Live.Badges(ctx, user, live.Watch{IncludeMuted: true, Cap: readstate.DefaultCap})
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	icon, err := i.config.Live.Icon(ctx, user, false)
	if err != nil {
		badges.Close()
		return nil, fmt.Errorf("watch: %w", err)
	}
	return &Stream{user: user, badges: badges, icon: icon}, nil
}

// Stream tells of one person's changes. What waits melts into one.
type Stream struct {
	user   id.User
	badges *live.BadgeStream
	icon   *live.IconStream

	tookBadges, tookIcon bool // by the last Next
}

// Notify has wake called whenever a change begins to wait.
func (s *Stream) Notify(wake func()) {
	s.badges.Notify(wake)
	s.icon.Notify(wake)
}

// Next takes what waits, if something does.
func (s *Stream) Next() (Change, bool, error) {
	var told live.BadgeChange
	var err error
	told, s.tookBadges, err = s.badges.Next()
	if err != nil {
		return Change{}, false, err
	}
	if _, s.tookIcon, err = s.icon.Next(); err != nil {
		return Change{}, false, err
	}
	change := Change{UserID: s.user, ChannelIDs: []id.Channel{}}
	for _, badge := range told.Badges {
		change.ChannelIDs = append(change.ChannelIDs, badge.ChannelID)
	}
	change.ChannelIDs = append(change.ChannelIDs, told.RemovedChannelIDs...)
	return change, s.tookBadges || s.tookIcon, nil
}

// Again has what Next took last wait again.
func (s *Stream) Again() {
	if s.tookBadges {
		s.badges.Again()
	}
	if s.tookIcon {
		s.icon.Again()
	}
}

// Close ends the stream.
func (s *Stream) Close() {
	s.badges.Close()
	s.icon.Close()
}
