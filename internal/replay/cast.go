package replay

import "iter"

// cast is what must be known of a trace before its first message is sent.
type cast struct {
	lines   int
	members map[int64]map[int64]bool // who writes or is named in each channel
}

// newCast reads a trace to its end.
func newCast(lines iter.Seq2[line, error]) (cast, error) {
	c := cast{members: map[int64]map[int64]bool{}}
	for l, err := range lines {
		if err != nil {
			return cast{}, err
		}
		c.lines++
		members := c.members[l.channel]
		if members == nil {
			members = map[int64]bool{}
			c.members[l.channel] = members
		}
		members[l.sender] = true
		for _, named := range l.mentions {
			members[named] = true
		}
	}
	return c, nil
}
