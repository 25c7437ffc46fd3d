package searchindex_test

import (
	"context"
	"fmt"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/searchindex"
	"github.com/coppice-go/coppice/transcript"
)

func say(ctx context.Context, st *coppice.Store, id, question, answer string) {
	s, err := st.Create(id, &coppice.SessionOptions{Title: id})
	if err != nil {
		panic(err)
	}
	if _, err := s.Append(ctx, entry.User(question), entry.Assistant(answer)); err != nil {
		panic(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		panic(err)
	}
	if err := s.Close(); err != nil {
		panic(err)
	}
}

// An index of a store: updated before a search, rebuilt if it is lost.
func ExampleIndex_Search() {
	ctx := context.Background()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer st.Close()
	say(ctx, st, "tides", "When is high water?", "At 11:42 in Brest.")
	say(ctx, st, "weather", "Will it rain?", "Not before high water in Brest.")

	x, err := searchindex.Open(ctx, "") // in memory; usually a file
	if err != nil {
		panic(err)
	}
	defer x.Close()
	report, err := x.Update(ctx, st, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("read", report.Entries, "entries of", report.Sessions, "sessions")

	q, err := searchindex.Parse(`"high water" brest`)
	if err != nil {
		panic(err)
	}
	hits, more, err := x.Search(ctx, q, &searchindex.SearchOptions{Limit: 10})
	if err != nil {
		panic(err)
	}
	for _, h := range hits {
		fmt.Printf("%s, %s: %s %v\n", h.Session, h.Role, h.Snippet, h.OnHead)
	}
	fmt.Println("more:", more)

	report, err = x.Rebuild(ctx, st, nil)
	fmt.Println("made anew of", report.Entries, "entries", err)

	if err := st.Delete(ctx, "weather"); err != nil {
		panic(err)
	}
	if err := x.Erase(ctx, "weather"); err != nil { // at once; the next update does it as well
		panic(err)
	}
	holds, err := x.Holds(ctx, "Not before high water")
	fmt.Println("after the deletion:", holds, err)
	// Output:
	// read 4 entries of 2 sessions
	// weather, assistant: Not before high water in Brest. true
	// more: false
	// made anew of 4 entries <nil>
	// after the deletion: false <nil>
}

// What users typed is found again as a shell finds its history.
func ExampleIndex_Recall() {
	ctx := context.Background()
	x, err := searchindex.Open(ctx, "")
	if err != nil {
		panic(err)
	}
	defer x.Close()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer st.Close()
	say(ctx, st, "tides", "When is high water?", "At 11:42 in Brest.")
	say(ctx, st, "weather", "Will it rain?", "No.")
	if _, err := x.Update(ctx, st, nil); err != nil {
		panic(err)
	}
	prompts, _, err := x.Recall(ctx, "when is", &searchindex.RecallOptions{Prefix: true})
	if err != nil {
		panic(err)
	}
	for _, p := range prompts {
		fmt.Println(p.Session, p.Text)
	}
	// Output: tides When is high water?
}

// Without an index: what an entry can be found by is matched as it is read.
func ExampleEntryText() {
	e := transcript.Entry{Type: "message", Raw: []byte(
		`{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"text","text":"At 11:42 in Brest."}]}}`)}
	text, role := searchindex.EntryText(e)
	q := searchindex.Words("brest", "at 11")
	snippet, mark, ok := q.Find(text)
	fmt.Printf("%s: %s, found %q, %v\n", role, snippet, snippet[mark[0]:mark[1]], ok)
	fmt.Println(searchindex.Words().Empty())
	// Output:
	// assistant: At 11:42 in Brest., found "Brest", true
	// true
}

// Where a hit is: on which branches, and whether the conversation's head has it.
func ExampleLines() {
	ctx := context.Background()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer st.Close()
	s, err := st.Create("tides", nil)
	if err != nil {
		panic(err)
	}
	ids, err := s.Append(ctx, entry.User("When is high water?"), entry.Assistant("At noon."))
	if err != nil {
		panic(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		panic(err)
	}
	if _, err := s.Branch(ctx, ids[0], &coppice.BranchOptions{Name: "again"}); err != nil {
		panic(err)
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		panic(err)
	}
	lines := searchindex.NewLines(tree)
	for i, id := range ids {
		ordinal, err := tree.Ordinal(id)
		if err != nil {
			panic(err)
		}
		branches, onHead := lines.Reach(ordinal)
		fmt.Println(i, branches, onHead)
	}
	// Output:
	// 0 [main again] true
	// 1 [main] false
}
