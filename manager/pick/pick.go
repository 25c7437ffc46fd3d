// Package pick lists and searches the sessions of a store for people who look for one: by fuzzy words, phrases and
// patterns, newest first, best first, or forks below what they come from. Results of the newest-first order come
// while the listing goes on, and how far it is is told.
package pick

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
)

// Sort is an order of sessions.
type Sort string

// The orders.
const (
	Recent    Sort = "recent"    // newest activity first; "" is the same
	Relevance Sort = "relevance" // what fits the query best first
	Threaded  Sort = "threaded"  // as recent, each fork below the session that it comes from
)

// Options narrow and order a list.
type Options struct {
	Cwd      string // only sessions of this working directory; "" = all
	Query    string // see Parse; "" = all
	Named    bool   // only those that somebody gave a title
	Internal bool   // those that agents began for themselves, too
	Sort     Sort
	Limit    int              // at most so many; 0 = all
	Progress func(p Progress) // told after each session that was looked at; nil = nobody asks
}

// Progress is how far a listing is. Total is how many sessions the store has, as far as the listing knows: deleted
// ones leave it when they are come upon.
type Progress struct{ Looked, Found, Total int }

// Found is a session that was found.
type Found struct {
	checkpoint.Summary
	Depth int // of Threaded: how many sessions of the list it hangs below
	Score int // of a query: the lower the better
}

// Sessions yields what is found. An error comes last and once.
func Sessions(ctx context.Context, st *coppice.Store, o Options) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		q, err := Parse(o.Query)
		if err == nil && !slices.Contains([]Sort{"", Recent, Relevance, Threaded}, o.Sort) {
			err = fmt.Errorf("unknown order %q: want %s, %s or %s", o.Sort, Recent, Relevance, Threaded)
		}
		if err != nil {
			yield(Found{}, err)
			return
		}
		var all []Found
		p := follower{tell: o.Progress}
		for sum, err := range st.List(ctx, coppice.ListOptions{Cwd: o.Cwd, Progress: p.listed}) {
			if err != nil {
				yield(Found{}, err)
				return
			}
			score, fits := q.Score(sum.Title + "\n" + sum.Preview + "\n" + sum.ID + "\n" + sum.Cwd)
			if fits = fits && (sum.Title != "" || !o.Named) && (!sum.Internal || o.Internal); fits {
				p.Found++
			}
			p.upTo(p.seen)
			f := Found{Summary: sum, Score: score}
			switch {
			case !fits:
			case o.Sort == Relevance || o.Sort == Threaded:
				all = append(all, f)
			case !yield(f, nil) || p.Found == o.Limit:
				return
			}
		}
		p.upTo(p.seen)
		if o.Sort == Relevance {
			slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(a.Score, b.Score) })
		} else {
			all = thread(all)
		}
		for i, f := range all {
			if o.Limit > 0 && i == o.Limit || !yield(f, nil) {
				return
			}
		}
	}
}

// follower tells of each session that was looked at, once.
type follower struct {
	Progress
	tell func(p Progress)
	seen int // by the listing
}

// listed is told by the listing before each session; those before that one were only passed over.
func (f *follower) listed(looked, total int) {
	f.upTo(min(f.seen, looked-1))
	f.seen, f.Total = looked, total
}

func (f *follower) upTo(looked int) {
	if looked > f.Looked {
		f.Looked = looked
		if f.tell != nil {
			f.tell(f.Progress)
		}
	}
}

// thread puts forks below what they come from. A family stands where its newest member does.
func thread(all []Found) []Found {
	at := map[string]int{}
	for i, f := range all {
		at[f.ID] = i
	}
	kids := make([][]int, len(all))
	root := make([]int, len(all)) // the topmost session of each one's family
	for i, f := range all {
		if p, ok := at[parent(f)]; ok && !leads(all, at, p, i) {
			kids[p] = append(kids[p], i)
		}
		root[i] = i
		for up, steps := parent(f), 0; steps < len(all); steps++ {
			p, ok := at[up]
			if !ok {
				break
			}
			root[i], up = p, parent(all[p])
		}
	}
	var out []Found
	done := make([]bool, len(all))
	for i := range all {
		stack := []Found{}
		for _, top := range []int{root[i], i} { // of a circle of parents the newest is the top
			if !done[top] {
				stack = append(stack, all[top])
				break
			}
		}
		for len(stack) > 0 {
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			n := at[f.ID]
			if done[n] {
				continue
			}
			done[n] = true
			out = append(out, f)
			for _, k := range slices.Backward(kids[n]) {
				kid := all[k]
				kid.Depth = f.Depth + 1
				stack = append(stack, kid)
			}
		}
	}
	return out
}

// leads tells that the parents of from lead to a session.
func leads(all []Found, at map[string]int, from, to int) bool {
	for steps := 0; steps <= len(all); steps++ {
		if from == to {
			return true
		}
		p, ok := at[parent(all[from])]
		if !ok {
			return false
		}
		from = p
	}
	return false // a circle that it is not in
}

// parent gives the id of the session that another comes from. Files of pi and its kin name it by its path there,
// in which the id stands behind a time: /a/2026-01-02T03-04-05-000Z_<id>.jsonl.
func parent(f Found) string {
	name, isFile := strings.CutSuffix(f.Parent, ".jsonl")
	if !isFile {
		return f.Parent
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return name[strings.LastIndexByte(name, '_')+1:]
}
