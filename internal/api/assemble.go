package api

import (
	"context"
	"iter"
	"maps"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/searchindex"
	"github.com/coppice-go/coppice/transcript"
)

// maxResumeTries bounds how often Resumed begins again because a commit came in between.
const maxResumeTries = 16

// Resumed returns what an agent needs to continue a session, and the context from which its messages are. Both belong
// to the same commit, even if other writers commit at the same time; after maxResumeTries attempts that they interrupt,
// the context is complete instead of bounded. Resumed changes nothing.
func Resumed(ctx context.Context, s *coppice.Session) (Resume, transcript.Context, error) {
	for try := 1; ; try++ {
		h := s.Head()
		con, err := s.Context(ctx)
		if err != nil {
			return Resume{}, transcript.Context{}, err
		}
		v, err := s.At(ctx, coppice.Target{})
		if err != nil {
			return Resume{}, transcript.Context{}, err
		}
		switch {
		case s.Head() == h:
		case try < maxResumeTries:
			continue
		default:
			h = v.Commit().Head
			if con, err = v.Context(ctx); err != nil {
				return Resume{}, transcript.Context{}, err
			}
		}
		out := resumed(s.ID(), h, v.Document(), con)
		out.Missing = s.Info().Missing
		return out, con, nil
	}
}

// ResumedAt returns what Resumed would have returned at the commit of a view, except that the context is complete
// instead of bounded.
func ResumedAt(ctx context.Context, s *coppice.Session, v *coppice.View) (Resume, transcript.Context, error) {
	con, err := v.Context(ctx)
	if err != nil {
		return Resume{}, transcript.Context{}, err
	}
	out := resumed(s.ID(), v.Commit().Head, v.Document(), con)
	return out, con, nil
}

func resumed(id string, h checkpoint.Head, doc checkpoint.Document, con transcript.Context) Resume {
	return Resume{
		Session: id, Seq: h.Seq, Commit: h.Commit, Head: null(h.Entry), Branch: h.Branch,
		State: nullJSON(doc.State), Manager: doc.Manager, Docs: doc.Docs,
		Context:   Messages(con),
		Window:    Window{con.Window.Complete, con.Window.OmittedEntries},
		OpenCalls: convert(con.OpenCalls, func(c transcript.ToolCall) OpenCall { return OpenCall(c) }),
	}
}

// Leaf returns the entry that a word names: the head of a branch, or the id itself, which need not exist; "" names the
// head of the session.
func Leaf(ctx context.Context, s *coppice.Session, word string) (string, error) {
	if word == "" {
		return s.Head().Entry, nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return "", err
	}
	for _, b := range t.Branches() {
		if b.Name == word {
			return b.Head, nil
		}
	}
	return word, nil
}

// maxPoints bounds the points of CostOverTime.
const maxPoints = 512

// CostOverTime returns the cost of a session up to each commit that cost something, oldest first. If that is more than
// maxPoints, the commits are divided into maxPoints stretches, and the last such commit of each counts. It reads every
// entry and every commit.
func CostOverTime(ctx context.Context, r *manager.UsageReader, s *coppice.Session) ([]CostAt, error) {
	growth, err := r.Growth(ctx, s)
	if err != nil {
		return nil, err
	}
	head := s.Head().Seq
	made := make([]int, head+1) // entries, by commit: they are stored in this order
	for c, err := range s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return nil, err
		}
		if c.Seq <= head {
			made[c.Seq] = c.Entries
		}
	}
	stretch := (head + maxPoints) / maxPoints
	points := []CostAt{}
	var sum float64
	var seq uint64
	for e, err := range s.Originals(coppice.ImageRefs(ctx)) {
		if err != nil {
			return nil, err
		}
		for seq < head && made[seq] == 0 {
			seq++
		}
		made[seq]--
		more := growth(e)
		if more == 0 {
			continue
		}
		sum += more
		if n := len(points); n > 0 && points[n-1].Seq/stretch == seq/stretch {
			points[n-1] = CostAt{seq, sum}
		} else {
			points = append(points, CostAt{seq, sum})
		}
	}
	return points, nil
}

// UsageOfSession returns the usage of all branches of a session.
func UsageOfSession(ctx context.Context, r *manager.UsageReader, s *coppice.Session) (Usage, error) {
	t, err := r.Session(ctx, s)
	return usageOf(s, "session", t), err
}

// UsageOfPath returns the usage of the path that ends at a leaf; "" = of none. It reads the entries of the path.
func UsageOfPath(ctx context.Context, r *manager.UsageReader, s *coppice.Session, leaf string) (Usage, error) {
	if leaf == "" {
		return usageOf(s, "path", manager.UsageTotals{}), nil
	}
	t, err := r.Path(ctx, s, s.Path(coppice.ImageRefs(ctx), leaf))
	return usageOf(s, "path", t), err
}

// UsageOfView returns the usage of the path of a view. It reads the entries of the path.
func UsageOfView(ctx context.Context, r *manager.UsageReader, s *coppice.Session, v *coppice.View) (Usage, error) {
	t, err := r.Path(ctx, s, v.Path(coppice.ImageRefs(ctx)))
	return usageOf(s, "path", t), err
}

// maxDays bounds the days of a Usage: the newest are kept.
const maxDays = 1024

func usageOf(s *coppice.Session, scope string, t manager.UsageTotals) Usage {
	out := Usage{
		Session: s.ID(), Scope: scope, Entries: t.Entries, Usage: Tokens(t.Usage), Inherited: Tokens(t.Inherited),
		Failed: t.Failed, Models: []ModelUsage{}, Days: []DayUsage{},
	}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		out.Models = append(out.Models, ModelUsage{null(name), Tokens(t.Models[name])})
	}
	for _, day := range slices.Sorted(maps.Keys(t.Days)) {
		out.Days = append(out.Days, DayUsage{day, Tokens(t.Days[day])})
	}
	out.Days = out.Days[max(0, len(out.Days)-maxDays):]
	return out
}

// Found yields the entries of a session that a query finds, in the order of appending. It reads every entry, and the
// tree only if it finds one. read, unless nil, receives the length of each entry's line that was read.
func Found(
	ctx context.Context, s *coppice.Session, q searchindex.Query, read func(bytes int),
) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		title := s.Info().Name()
		var lines *searchindex.Lines
		for e, err := range s.Entries(ctx) {
			if err != nil {
				yield(Match{}, err)
				return
			}
			if read != nil {
				read(len(e.Raw))
			}
			text, role := searchindex.EntryText(e)
			snippet, mark, ok := q.Find(text)
			if !ok || text == "" {
				continue
			}
			if lines == nil {
				tree, err := s.Tree(ctx)
				if err != nil {
					yield(Match{}, err)
					return
				}
				lines = searchindex.NewLines(tree)
			}
			m := Match{
				Session: s.ID(), Title: title, Entry: e.ID, Ordinal: e.Ordinal, Type: e.Type, Role: role, Time: e.Time,
				Snippet: snippet, Mark: mark,
			}
			m.Branches, m.OnHead = lines.Reach(e.Ordinal)
			if !yield(m, nil) {
				return
			}
		}
	}
}
