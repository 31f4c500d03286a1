// Package connection holds the pages of lists as GraphQL clients know them: edges, nodes, and opaque cursors.
package connection

import (
	"encoding/base64"
	"strconv"

	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// PageInfo tells where a page stands in its list.
type PageInfo struct {
	HasNextPage     bool
	HasPreviousPage bool
	StartCursor     *string
	EndCursor       *string
}

// Badges is a page of badges.
type Badges struct {
	page  readstate.Page
	later bool
}

// BadgeEdge is a badge and its cursor.
type BadgeEdge struct{ Node readstate.Badge }

// NewBadges returns the page as a connection; later says that it began after a cursor.
func NewBadges(page readstate.Page, later bool) Badges { return Badges{page, later} }

// Nodes are the badges.
func (b Badges) Nodes() []readstate.Badge { return b.page.Badges }

// Edges are the badges with their cursors.
func (b Badges) Edges() []BadgeEdge {
	edges := make([]BadgeEdge, len(b.page.Badges))
	for i, badge := range b.page.Badges {
		edges[i] = BadgeEdge{badge}
	}
	return edges
}

// Total is of all channels that are not muted.
func (b Badges) Total() readstate.Total { return b.page.Total }

// StoreEpoch names the data that the page was read from.
func (b Badges) StoreEpoch() string { return b.page.StoreEpoch }

// PageInfo tells where the page stands.
func (b Badges) PageInfo() PageInfo {
	return pageInfo(b.page.Badges, func(n readstate.Badge) int64 { return n.Activity }, b.later, b.page.HasNext)
}

// Cursor is where the next page may begin.
func (e BadgeEdge) Cursor() string { return encode(e.Node.Activity) }

// Users is a page of people.
type Users struct {
	people         []person.Person
	later, hasNext bool
}

// UserEdge is a person and their cursor.
type UserEdge struct{ Node person.Person }

// NewUsers returns the page as a connection; later says that it began after a cursor.
func NewUsers(people []person.Person, later, hasNext bool) Users {
	return Users{people, later, hasNext}
}

// Nodes are the people.
func (u Users) Nodes() []person.Person { return u.people }

// Edges are the people with their cursors.
func (u Users) Edges() []UserEdge {
	edges := make([]UserEdge, len(u.people))
	for i, p := range u.people {
		edges[i] = UserEdge{p}
	}
	return edges
}

// PageInfo tells where the page stands.
func (u Users) PageInfo() PageInfo {
	return pageInfo(u.people, func(p person.Person) int64 { return int64(p.ID) }, u.later, u.hasNext)
}

// Cursor is where the next page may begin.
func (e UserEdge) Cursor() string { return encode(int64(e.Node.ID)) }

// DeviceSync is a page of what a device should do.
type DeviceSync struct {
	Channels   []delivery.ChannelAction
	StoreEpoch string
	PageInfo   PageInfo
}

// NewDeviceSync returns the page; later says that it began after a cursor.
func NewDeviceSync(page delivery.ActionPage, later bool) DeviceSync {
	key := func(c delivery.ChannelAction) int64 { return int64(c.ChannelID) }
	return DeviceSync{page.Channels, page.StoreEpoch, pageInfo(page.Channels, key, later, page.HasNext)}
}

// Inspection is what support sees of a person, with a page of their badges.
type Inspection struct {
	inspect.Inspection
	PageInfo PageInfo
}

// NewInspection returns the page; later says that it began after a cursor.
func NewInspection(seen inspect.Inspection, later bool) Inspection {
	key := func(e inspect.Explanation) int64 { return int64(e.ChannelID) }
	return Inspection{seen, pageInfo(seen.Badges, key, later, seen.HasNext)}
}

// AfterActivity reads a cursor of Badges.
func AfterActivity(cursor *string) (*int64, error) {
	if cursor == nil {
		return nil, nil //nolint:nilnil // no cursor is a cursor: the beginning
	}
	n, err := decode(*cursor)
	return &n, err
}

// AfterUser reads a cursor of Users.
func AfterUser(cursor *string) (id.User, error) { return after[id.User](cursor) }

// AfterChannel reads a cursor of a DeviceSync or an Inspection.
func AfterChannel(cursor *string) (id.Channel, error) { return after[id.Channel](cursor) }

func after[T ~int64](cursor *string) (T, error) {
	if cursor == nil {
		return 0, nil
	}
	n, err := decode(*cursor)
	return T(n), err
}

func pageInfo[T any](nodes []T, key func(T) int64, later, hasNext bool) PageInfo {
	info := PageInfo{HasNextPage: hasNext, HasPreviousPage: later}
	if len(nodes) > 0 {
		start, end := encode(key(nodes[0])), encode(key(nodes[len(nodes)-1]))
		info.StartCursor, info.EndCursor = &start, &end
	}
	return info
}

func encode(key int64) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, key, 10))
}

func decode(cursor string) (int64, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		var key int64
		if key, err = strconv.ParseInt(string(text), 10, 64); err == nil && key >= 0 {
			return key, nil
		}
	}
	return 0, fault.BadInput("after", "must be a cursor that an earlier page gave")
}
