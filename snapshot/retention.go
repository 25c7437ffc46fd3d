package snapshot

import (
	"cmp"
	"slices"
	"time"
)

// Retention selects the snapshots to keep, in the terms of restic: a snapshot stays if any rule keeps it. The zero
// Retention has no rule and keeps them all. A count below zero means no limit.
type Retention struct {
	Last   int      // the newest n
	Daily  int      // of the newest n days with snapshots, the newest of each day
	Weekly int      // likewise by ISO week
	Tags   []string // those with one of these tags; "*" = those with any tag
	DryRun bool     // only report which would be dropped
}

// bucket is the state of one counting rule: it keeps the first snapshot of each period.
type bucket struct {
	left   int
	period func(i int, t time.Time) int
	last   int
}

// Select splits a list, in any order, into the snapshots to keep and to drop, each newest first. Days and weeks are
// those of UTC. As in restic the oldest snapshot stays while a rule has counts left: the history is kept as long as the
// rules allow. A snapshot with Only set is always kept.
func (r Retention) Select(list []Info) (keep, drop []Info) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(b.ID, a.ID))
	})
	if r.Last == 0 && r.Daily == 0 && r.Weekly == 0 && len(r.Tags) == 0 {
		return list, nil
	}
	buckets := []bucket{
		{left: r.Last, period: func(i int, _ time.Time) int { return i }, last: -1},
		{left: r.Daily, period: day, last: -1},
		{left: r.Weekly, period: week, last: -1},
	}
	for i, s := range list {
		stays := s.Only || r.tagged(s.Tag)
		for b := range buckets {
			if buckets[b].take(i, s.Time, i == len(list)-1) {
				stays = true
			}
		}
		if stays {
			keep = append(keep, s)
		} else {
			drop = append(drop, s)
		}
	}
	return keep, drop
}

// take reports whether the rule keeps a snapshot, and counts it.
func (b *bucket) take(i int, t time.Time, oldest bool) bool {
	if b.left == 0 {
		return false
	}
	p := b.period(i, t.UTC())
	if p == b.last && !oldest {
		return false
	}
	b.last = p
	if b.left > 0 {
		b.left--
	}
	return true
}

func day(_ int, t time.Time) int { return t.Year()*1000 + t.YearDay() }

func week(_ int, t time.Time) int {
	year, week := t.ISOWeek()
	return year*100 + week
}

func (r Retention) tagged(tag string) bool {
	return tag != "" && slices.ContainsFunc(r.Tags, func(t string) bool { return t == tag || t == "*" })
}
