package manager

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
)

// Sort is an order of sessions.
type Sort string

// The orders.
const (
	SortRecent    Sort = "recent"    // newest activity first; "" is the same
	SortRelevance Sort = "relevance" // what fits the query best first
	SortThreaded  Sort = "threaded"  // as recent, each fork below the session that it comes from
)

// PickOptions narrow and order a list.
type PickOptions struct {
	Cwd      string // only sessions of this working directory; "" = all
	Query    string // see Parse; "" = all
	Named    bool   // only those that have a title of their own
	Internal bool   // those that agents began for themselves, too; pinned ones always
	Sort     Sort
	Limit    int                  // at most so many; 0 = all
	Progress func(p PickProgress) // called after each session that was looked at; nil = no one asks

	// Pinned are ids of sessions that come first if they fit, whatever the order. Each costs one read more, so that
	// they need not be waited for; one that is gone is passed over.
	Pinned []string
	// Said returns the sessions in which a query was said, by their ids, with a line around it: those that do not fit
	// by what they are called come after those that do. Its error is the last result. nil = no one knows.
	Said func(ctx context.Context, query string) (map[string]string, error)
}

// PickProgress is how far a listing is. Total is the number of sessions in the store; deleted ones
// are subtracted when they are found.
type PickProgress struct{ Looked, Found, Total int }

// Found is a session that was found.
type Found struct {
	checkpoint.Summary
	Depth  int    // of Threaded: how many sessions of the list it hangs below
	Score  int    // of a query: the lower the better
	Pinned bool   // it is one of Options.Pinned
	Said   string // from Options.Said, for a session that does not match otherwise
}

// Pick yields the sessions of a store that fit: pinned ones first, and after the others those that an index of
// conversations finds. Results in the newest-first order are yielded during the listing. An error comes last and once.
func Pick(ctx context.Context, st *coppice.Store, o PickOptions) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		q, err := ParseQuery(o.Query)
		if err == nil && !slices.Contains([]Sort{"", SortRecent, SortRelevance, SortThreaded}, o.Sort) {
			err = fmt.Errorf("unknown order %q: want %s, %s or %s", o.Sort, SortRecent, SortRelevance, SortThreaded)
		}
		if err != nil {
			yield(Found{}, err)
			return
		}
		p := picker{o: o, q: q, follower: follower{tell: o.Progress}, yield: yield}
		if err := p.run(ctx, st); err != nil && !p.done {
			yield(Found{}, err)
		}
	}
}

// picker is one run of Sessions.
type picker struct {
	follower
	o     PickOptions
	q     Query
	said  map[string]string
	yield func(Found, error) bool

	first map[string]bool // the pinned ones that were given before the listing
	held  []Found         // what matches, in an order that is known only at the end of the listing
	last  []Found         // what matches only by Options.Said
	given int
	done  bool // no one wants more
}

func (p *picker) run(ctx context.Context, st *coppice.Store) error {
	var missed error // what was said is one way to find a session, and others are left
	if p.o.Said != nil && p.o.Query != "" {
		p.said, missed = p.o.Said(ctx, p.o.Query)
	}
	ordered := p.o.Sort == SortRelevance || p.o.Sort == SortThreaded
	if !ordered {
		for _, f := range p.pinned(ctx, st) {
			p.give(f)
		}
	}
	if p.done {
		return nil
	}
	for sum, err := range st.List(ctx, coppice.ListOptions{Cwd: p.o.Cwd, Progress: p.listed}) {
		if err != nil {
			return err
		}
		f, fits := p.match(sum)
		if fits && !p.first[sum.ID] {
			p.Found++
		}
		p.upTo(p.seen)
		switch {
		case !fits || p.first[sum.ID]:
		case f.Said != "":
			p.last = append(p.last, f)
		case ordered:
			p.held = append(p.held, f)
		default:
			p.give(f)
		}
		if p.done {
			return nil
		}
	}
	p.upTo(p.seen)
	for _, f := range p.inOrder() {
		if p.give(f); p.done {
			return nil
		}
	}
	return missed
}

// match reports whether a session is one of those that are looked for, and how well it fits.
func (p *picker) match(sum checkpoint.Summary) (Found, bool) {
	f := Found{Summary: sum, Pinned: slices.Contains(p.o.Pinned, sum.ID)}
	if p.o.Named && sum.Title == "" || sum.Internal && !p.o.Internal && !f.Pinned {
		return f, false
	}
	fits := false
	f.Score, fits = p.q.Score(sum.Title + "\n" + sum.First + "\n" + sum.Preview + "\n" + sum.ID + "\n" + sum.Cwd)
	if !fits {
		f.Said = p.said[sum.ID]
	}
	return f, fits || f.Said != ""
}

// give yields one, unless there are enough.
func (p *picker) give(f Found) {
	if !p.done {
		p.given++
		p.done = !p.yield(f, nil) || p.given == p.o.Limit
	}
}

// inOrder returns what waited for the end of the listing.
func (p *picker) inOrder() []Found {
	if p.o.Sort == SortRelevance {
		slices.SortStableFunc(p.held, func(a, b Found) int { return cmp.Compare(a.Score, b.Score) })
	}
	all := slices.Concat(p.held, p.last)
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(rank(a), rank(b)) })
	if p.o.Sort == SortThreaded {
		return threaded(all)
	}
	return all
}

func rank(f Found) int {
	if f.Pinned {
		return 0
	}
	return 1
}

// follower reports each session that was looked at, once.
type follower struct {
	PickProgress
	tell func(p PickProgress)
	seen int // by the listing
}

// listed is called by the listing before each session; those before that one were only passed over.
func (f *follower) listed(looked, total int) {
	f.upTo(min(f.seen, looked-1))
	f.seen, f.Total = looked, total
}

func (f *follower) upTo(looked int) {
	if looked > f.Looked {
		f.Looked = looked
		if f.tell != nil {
			f.tell(f.PickProgress)
		}
	}
}
