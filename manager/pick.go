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
	SortRelevance Sort = "relevance" // the best match of the query first
	SortThreaded  Sort = "threaded"  // like recent, each fork below its parent
)

// PickOptions narrow and order a list.
type PickOptions struct {
	Cwd      string // only sessions of this working directory; "" = all
	Query    string // see Parse; "" = all
	Named    bool   // only those with a title of their own
	Internal bool   // include sessions that agents created for themselves; pinned ones are always included
	Sort     Sort
	Limit    int                  // maximum number; 0 = all
	Progress func(p PickProgress) // called after each examined session; nil = none

	// Pinned are ids of sessions that are yielded first if they match, whatever the order. Each costs one more read, so
	// that they do not wait for the listing; missing ones are skipped.
	Pinned []string
	// Matches searches the conversations: it returns, by session id, a line of text that contains a match of the query.
	// These sessions follow those that match by title, directory or id. An error does not end Pick. nil = conversations
	// are not searched.
	Matches func(ctx context.Context, query string) (map[string]string, error)
}

// PickProgress is the progress of a listing. Total is the number of sessions in the store; deleted ones are subtracted
// when they are found.
type PickProgress struct{ Looked, Found, Total int }

// Found is a matching session.
type Found struct {
	checkpoint.Summary
	Depth     int    // with SortThreaded: the number of its ancestors in the list
	Score     int    // of a query: lower is better
	Pinned    bool   // it is one of Options.Pinned
	MatchLine string // text of the conversation around a match (PickOptions.Matches); "" = it matches otherwise
}

// Pick yields the matching sessions of a store: pinned ones first, and last those that match only by their
// conversation. With the order SortRecent results are yielded during the listing. An error is yielded last and once.
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

// picker is one run of Pick.
type picker struct {
	follower
	o       PickOptions
	q       Query
	matches map[string]string
	yield   func(Found, error) bool

	first map[string]bool // pinned sessions yielded before the listing
	held  []Found         // matches whose order is known only after the listing
	last  []Found         // sessions that match only by their conversation
	given int
	done  bool // the caller stopped the iteration
}

func (p *picker) run(ctx context.Context, st *coppice.Store) error {
	var missed error // other matches are still yielded
	if p.o.Matches != nil && p.o.Query != "" {
		p.matches, missed = p.o.Matches(ctx, p.o.Query)
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
		case f.MatchLine != "":
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

// match reports whether a session matches the options, and its score.
func (p *picker) match(sum checkpoint.Summary) (Found, bool) {
	f := Found{Summary: sum, Pinned: slices.Contains(p.o.Pinned, sum.ID)}
	if p.o.Named && sum.Title == "" || sum.Internal && !p.o.Internal && !f.Pinned {
		return f, false
	}
	fits := false
	f.Score, fits = p.q.Score(sum.Title + "\n" + sum.First + "\n" + sum.Preview + "\n" + sum.ID + "\n" + sum.Cwd)
	if !fits {
		f.MatchLine = p.matches[sum.ID]
	}
	return f, fits || f.MatchLine != ""
}

// give yields a session unless the limit is reached.
func (p *picker) give(f Found) {
	if !p.done {
		p.given++
		p.done = !p.yield(f, nil) || p.given == p.o.Limit
	}
}

// inOrder returns the sessions that were held until the end of the listing.
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

// follower reports each examined session once.
type follower struct {
	PickProgress
	tell func(p PickProgress)
	seen int // by the listing
}

// listed is called by the listing before each session; the sessions since the last call were skipped.
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
