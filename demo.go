package main

import (
	"context"
	"fmt"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// demoTokenTTL is how long the tokens that are printed are good for.
const demoTokenTTL = 30 * 24 * time.Hour

// demoPeople are who tokens are printed for.
var demoPeople = []person.Viewer{
	{ID: 1, Name: "Ada", Role: person.RoleUser},
	{ID: 2, Name: "Ben", Role: person.RoleUser},
	{ID: 3, Name: "Chao", Role: person.RoleUser},
	{ID: 4, Name: "Dina", Role: person.RoleUser},
}

// demoSupport is whom the inspector of a developer's machine belongs to.
var demoSupport = person.Viewer{ID: 101, Name: "Support", Role: person.RoleSupport}

// demoMaker makes channels for the people of the demo. It is known under this name once all of the demo is there, and
// under that of demoBeginner before.
var (
	demoMaker    = person.Viewer{ID: 100, Name: "Demo", Role: person.RoleService}
	demoBeginner = person.Viewer{ID: 100, Name: "Demo, being made", Role: person.RoleService}
)

var demoChannels = []channel.New{
	{ID: 101, Kind: channel.Group, Name: "general", CreatorID: 1, Members: []id.User{1, 2, 3, 4}},
	{ID: 102, Kind: channel.Group, Name: "design", CreatorID: 1, Members: []id.User{1, 2, 3}},
	{ID: 103, Kind: channel.Group, Name: "release", CreatorID: 1, Members: []id.User{1, 2, 4}},
	{ID: 104, Kind: channel.Direct, Members: []id.User{1, 2}},
	{ID: 105, Kind: channel.Direct, Members: []id.User{1, 3}},
}

// demoMessages are sent in this order: a sender has read what came before.
var demoMessages = []struct {
	channel id.Channel
	sender  id.User
	body    string
	naming  []id.User
}{
	{101, 1, "Morning, all. The badge service goes live today.", nil},
	{101, 2, "Finally! No more red dots that lie.", nil},
	{101, 3, "I read everything on my phone and the laptop agrees. Strange feeling.", nil},
	{101, 4, "@Ada who writes the changelog?", []id.User{1}},
	{102, 3, "New drafts of the icons are in the folder.", nil},
	{102, 1, "I like the second one.", nil},
	{102, 3, "Then the second one it is.", nil},
	{103, 4, "Release branch is cut.", nil},
	{103, 2, "Tests are green.", nil},
	{104, 2, "Lunch at twelve?", nil},
	{104, 1, "Twelve is good.", nil},
	{105, 3, "Could you look at my review?", nil},
}

// makeDemo makes people, channels and messages to look at, in a store that holds nothing yet. What an earlier start was
// cut off from making it makes; where all of it is there, or somebody else's data, it changes nothing.
func (s *server) makeDemo(ctx context.Context) error {
	maker, err := s.people.Get(ctx, demoMaker.ID)
	if err != nil {
		return err
	}
	largest, err := s.store.LargestID(ctx)
	if err != nil {
		return err
	}
	switch {
	case maker.DisplayName == demoMaker.Name:
		return nil
	case largest > 0 && maker.DisplayName != demoBeginner.Name:
		s.log.Info("no demo data: the store holds data already")
		return nil
	}
	for _, viewer := range append([]person.Viewer{demoBeginner}, demoPeople...) {
		if err := s.people.Welcome(ctx, viewer); err != nil {
			return err
		}
	}
	for _, c := range demoChannels {
		if _, err := s.channels.Create(ctx, demoMaker, c); err != nil && fault.CodeOf(err) != fault.Conflict {
			return err
		}
	}
	for i, m := range demoMessages {
		draft := channel.Draft{ChannelID: m.channel, Body: m.body, ClientMessageID: fmt.Sprintf("demo-%d", i), Mentions: m.naming}
		if _, err := s.channels.Send(ctx, person.Viewer{ID: m.sender, Role: person.RoleUser}, draft, readstate.DefaultCap); err != nil {
			return err
		}
	}
	if _, err := s.readStates.SetMuted(ctx, demoPeople[0].ID, 103, true, readstate.DefaultCap); err != nil {
		return err
	}
	return s.people.Welcome(ctx, demoMaker)
}
