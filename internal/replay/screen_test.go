package replay

import (
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/readstate"
)

func TestAScreenKeepsWhatItIsTold(t *testing.T) {
	t.Parallel()
	snapshot := func(badges ...readstate.Badge) live.BadgeChange {
		return live.BadgeChange{Snapshot: true, Badges: badges, StoreEpoch: "a"}
	}
	change := func(badges ...readstate.Badge) live.BadgeChange {
		return live.BadgeChange{Badges: badges, StoreEpoch: "a"}
	}
	badge := func(channelID id.Channel, version id.Seq) readstate.Badge {
		return readstate.Badge{UserID: 7, ChannelID: channelID, HeadVersion: version}
	}
	muted := func(channelID id.Channel, version id.Seq) readstate.Badge {
		b := badge(channelID, version)
		b.Muted = true
		return b
	}
	elsewhere := snapshot(badge(1, 1))
	elsewhere.StoreEpoch = "b"
	removed := live.BadgeChange{RemovedChannelIDs: []id.Channel{1}, StoreEpoch: "a"}
	removedOther := live.BadgeChange{RemovedChannelIDs: []id.Channel{9}, StoreEpoch: "a"}
	notMine := badge(1, 1)
	notMine.UserID = 8

	for name, test := range map[string]struct {
		watch   live.Watch
		changes []live.BadgeChange
		want    map[id.Channel]id.Seq // the versions on the screen
		fault   string
	}{
		"nothing":              {live.Watch{}, []live.BadgeChange{snapshot()}, nil, ""},
		"a later badge":        {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5), badge(2, 6)), change(badge(1, 7))}, map[id.Channel]id.Seq{1: 7, 2: 6}, ""},
		"the same badge":       {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), change(badge(1, 5))}, map[id.Channel]id.Seq{1: 5}, ""},
		"a snapshot later on":  {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), snapshot(badge(2, 6))}, map[id.Channel]id.Seq{2: 6}, ""},
		"a removed one":        {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), removed}, nil, ""},
		"one that comes back":  {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), removed, change(badge(1, 8))}, map[id.Channel]id.Seq{1: 8}, ""},
		"a muted one":          {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), change(muted(1, 6))}, nil, ""},
		"one muted no more":    {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), change(muted(1, 6)), change(badge(1, 7))}, map[id.Channel]id.Seq{1: 7}, ""},
		"a muted one, watched": {live.Watch{IncludeMuted: true}, []live.BadgeChange{snapshot(muted(1, 5)), change(muted(1, 6))}, map[id.Channel]id.Seq{1: 6}, ""},
		"another store":        {live.Watch{}, []live.BadgeChange{snapshot(badge(1, 5)), elsewhere}, map[id.Channel]id.Seq{1: 1}, ""},

		"an earlier badge": {
			live.Watch{},
			[]live.BadgeChange{snapshot(badge(1, 5)), change(badge(1, 4))},
			map[id.Channel]id.Seq{1: 5},
			"channel 1: version 4 comes after version 5",
		},
		"an earlier snapshot": {
			live.Watch{},
			[]live.BadgeChange{snapshot(badge(1, 5)), snapshot(badge(1, 4))},
			nil, "channel 1: version 4 comes after version 5",
		},
		"one that comes back earlier": {
			live.Watch{},
			[]live.BadgeChange{snapshot(badge(1, 5)), removed, change(badge(1, 4))},
			nil, "channel 1: version 4 comes after version 5",
		},
		"no snapshot":              {live.Watch{}, []live.BadgeChange{change(badge(1, 5))}, map[id.Channel]id.Seq{1: 5}, "it does not begin with a snapshot"},
		"no snapshot of the store": {live.Watch{}, []live.BadgeChange{elsewhere, change()}, map[id.Channel]id.Seq{1: 1}, "the store is another one, and it gets no snapshot"},
		"a muted one at first":     {live.Watch{}, []live.BadgeChange{snapshot(muted(1, 5))}, nil, "the snapshot has channel 1, which is muted"},
		"another person's":         {live.Watch{}, []live.BadgeChange{snapshot(notMine)}, nil, "it is told of person 8 in channel 1, which it did not ask for"},
		"another channel": {
			live.Watch{ChannelIDs: []id.Channel{2}},
			[]live.BadgeChange{snapshot(badge(2, 5)), change(badge(1, 6))},
			map[id.Channel]id.Seq{2: 5},
			"it is told of person 7 in channel 1, which it did not ask for",
		},
		"another channel removed": {
			live.Watch{ChannelIDs: []id.Channel{}},
			[]live.BadgeChange{snapshot(), removedOther},
			nil, "it is told of channel 9, which it did not ask for",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(7)
			s.watch, s.watch.Cap = test.watch, readstate.DefaultCap
			for _, c := range test.changes {
				s.take(c)
			}
			if s.fault != test.fault {
				t.Errorf("the fault is %q, want %q", s.fault, test.fault)
			}
			if len(s.badges) != len(test.want) {
				t.Errorf("it shows %v, want %v", s.badges, test.want)
			}
			for channelID, version := range test.want {
				if got := s.badges[channelID].Version(); got != version {
					t.Errorf("it shows version %d of channel %d, want %d", got, channelID, version)
				}
			}
		})
	}
}

func TestAScreenCountsAsFarAsItAsks(t *testing.T) {
	t.Parallel()
	unread := map[id.Channel]tally{
		1: {standing: standing{member: true}, unread: counted(100), mentions: counted(3)},
		2: {standing: standing{member: true, muted: true}, unread: counted(5)},
	}
	sum := total{unread: counted(100), mentions: counted(3), channels: 1}
	for _, limit := range []int{readstate.DefaultCap, readstate.MaxCap} {
		s := newScreen(7)
		s.watch.Cap = limit
		s.expect(unread, sum)
		b := readstate.Badge{UserID: 7, ChannelID: 1, Countable: 100, Naming: 3}
		s.take(live.BadgeChange{Snapshot: true, Badges: []readstate.Badge{b}, Total: readstate.Total{Countable: 100, Naming: 3, UnreadChannels: 1}})
		if wrong := s.wrong(); wrong != "" {
			t.Errorf("counted to %d: %s", limit, wrong)
		}
		b.Countable, b.HeadVersion = 101, 1
		s.take(live.BadgeChange{Badges: []readstate.Badge{b}, Total: s.total})
		if wrong := s.wrong(); (wrong == "") != (limit == readstate.DefaultCap) {
			t.Errorf("one more, counted to %d: %q", limit, wrong)
		}
	}
}
