// Package retain chooses the sessions and snapshots that a retention policy removes, and removes them.
//
// A session and those that it started, forks left out, are a family: it stays or goes as a whole, so that no child
// outlives its parent. Its activity is the newest of its members, its size their sum, and its folder and metadata
// are those of the first of them, the root.
package retain

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/snapshot"
)

// Policy is what a store keeps. A family that a keep rule keeps is never removed, and neither is one with a session
// that is held or cannot be read. All others go; with MaxBytes only as many of them, those of the oldest activity
// first, as bring the store to that size. A policy without a rule removes nothing.
type Policy struct {
	KeepWithin time.Duration // keep what was active within this time; 0 = no such rule
	KeepLast   int           // keep so many of each group, those of the newest activity; 0 = no such rule
	GroupBy    string        // metadata key whose values are the groups of KeepLast; "" = the working directory
	MaxBytes   int64         // bytes of all objects of sessions, as they are stored; 0 = no limit

	Snapshots snapshot.Retention // of each session, before any session is removed for its size
}

// Empty reports whether the policy has no rule.
func (p Policy) Empty() bool { return !p.removes() && !p.thins() }

// removes reports whether the policy may remove sessions.
func (p Policy) removes() bool { return p.KeepWithin > 0 || p.KeepLast > 0 || p.MaxBytes > 0 }

// thins reports whether the policy may remove snapshots.
func (p Policy) thins() bool {
	s := p.Snapshots
	return s.Last != 0 || s.Daily != 0 || s.Weekly != 0 || len(s.Tags) > 0
}

// Session is what a decision needs of a session.
type Session struct {
	ID, Commit string // Commit: the newest one; "" = the session cannot be read
	Parent     string // that started it; "" = none, or it is a fork
	Group      string // of KeepLast
	Name       string // for people
	Updated    time.Time
	Bytes      int64 // of all its objects
	Snapshots  int
	Held       bool
}

// Of returns what a decision by this policy needs of a summary, whose metadata is complete.
func (p Policy) Of(sum *checkpoint.Summary) Session {
	s := Session{
		ID: sum.ID, Commit: sum.Commit, Parent: sum.Parent, Group: sum.Cwd, Name: sum.Name(),
		Updated: sum.Updated, Held: sum.Held() || sum.MetaElsewhere,
	}
	if sum.Relation == "fork" {
		s.Parent = ""
	}
	if p.GroupBy != "" {
		s.Group = sum.Meta[p.GroupBy]
	}
	return s
}

// Reason is a reason of a removal.
type Reason string

// Reasons of a removal.
const (
	Age    Reason = "age"    // it was not active within Policy.KeepWithin
	Count  Reason = "count"  // it is not one of the newest Policy.KeepLast of its group
	Bytes  Reason = "bytes"  // the store is over Policy.MaxBytes
	Parent Reason = "parent" // it goes with the session that started it
)

// Removal is the decision to remove a session, as of its newest commit.
type Removal struct {
	Session
	Root    string // id of the first session of its family
	Because []Reason

	active time.Time // newest activity of the family
}

// Decision is what a policy does to a store.
type Decision struct {
	Removals []Removal // families by activity, the oldest first; of each those that were started last first
	Sessions int       // that were looked at
	Bytes    int64     // of all of them
	Left     int64     // bytes of those that stay: above Policy.MaxBytes if rules or holds keep too much
}

// Decide returns what a policy removes of a store, which has exactly these sessions, at a time. The order of sessions
// has no part in it.
func Decide(p Policy, sessions []Session, now time.Time) Decision {
	sessions = slices.Clone(sessions)
	slices.SortFunc(sessions, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	d := Decision{Sessions: len(sessions)}
	families := familiesOf(sessions)
	for _, f := range families {
		d.Bytes += f.bytes
	}
	d.Left = d.Bytes
	if !p.removes() {
		return d
	}
	p.apply(families, now)
	for _, f := range families {
		if f.kept || p.MaxBytes > 0 && d.Left <= p.MaxBytes {
			continue
		}
		d.Left -= f.bytes
		d.Removals = append(d.Removals, f.removals(p)...)
	}
	return d
}

// apply sets which families the rules of a policy keep.
func (p Policy) apply(families []*family, now time.Time) {
	seen := map[string]int{}
	for _, f := range slices.Backward(families) { // the newest first
		if p.KeepWithin > 0 && now.Sub(f.updated) <= p.KeepWithin {
			f.kept = true
		}
		group := f.members[0].Group
		if seen[group]++; seen[group] <= p.KeepLast {
			f.kept = true
		}
	}
}

// family is a session, its first member, and those that it started.
type family struct {
	members []Session // a parent before its children
	updated time.Time // the newest activity
	bytes   int64
	kept    bool
}

// removals returns the removal of a family: children before their parents.
func (f *family) removals(p Policy) []Removal {
	var because []Reason
	if p.KeepWithin > 0 {
		because = append(because, Age)
	}
	if p.KeepLast > 0 {
		because = append(because, Count)
	}
	if p.MaxBytes > 0 {
		because = append(because, Bytes)
	}
	root := f.members[0].ID
	var list []Removal
	for i, s := range slices.Backward(f.members) {
		r := Removal{Session: s, Root: root, Because: because, active: f.updated}
		if i > 0 {
			r.Because = []Reason{Parent}
		}
		list = append(list, r)
	}
	return list
}

// familiesOf returns the families of sessions, which are in the order of their ids: by activity, the oldest first, and
// by id. One with a session that is held or cannot be read is kept.
func familiesOf(sessions []Session) []*family {
	root, depth := lineage(sessions)
	order := make([]int, len(sessions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(depth[a], depth[b]) })
	byRoot := make(map[int]*family)
	var families []*family
	for _, i := range order { // all roots come first, in the order of their ids
		f := byRoot[root[i]]
		if f == nil {
			f = &family{}
			byRoot[i] = f
			families = append(families, f)
		}
		s := sessions[i]
		f.members = append(f.members, s)
		f.bytes += s.Bytes
		if s.Updated.After(f.updated) {
			f.updated = s.Updated
		}
		f.kept = f.kept || s.Held || s.Commit == ""
	}
	slices.SortStableFunc(families, func(a, b *family) int { return a.updated.Compare(b.updated) })
	return families
}

// lineage returns for each session the index of its root, and how many sessions are from there to it. Of sessions that
// are each other's parents one is the root.
func lineage(sessions []Session) (root, depth []int) {
	const onPath = -1
	index := make(map[string]int, len(sessions))
	for i, s := range sessions {
		index[s.ID] = i
	}
	root, depth = make([]int, len(sessions)), make([]int, len(sessions))
	for i := range sessions {
		var path []int
		at, found := i, true
		for found && depth[at] == 0 {
			depth[at] = onPath
			path = append(path, at)
			at, found = index[sessions[at].Parent]
		}
		if len(path) == 0 {
			continue
		}
		above, first := 0, path[len(path)-1]
		if found && depth[at] != onPath {
			above, first = depth[at], root[at]
		}
		for _, k := range slices.Backward(path) {
			above++
			root[k], depth[k] = first, above
		}
	}
	return root, depth
}
