package coppice_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// exampleStore returns a store in memory with a session "harbour" of two turns. The examples leave out what a program does
// with errors where it does not matter to them.
func exampleStore(ctx context.Context) (*coppice.Store, *coppice.Session) {
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	s, err := store.Create("harbour", &coppice.SessionOptions{Title: "tides"})
	if err != nil {
		panic(err)
	}
	for turn, question := range []string{"When is high water?", "And low water?"} {
		if _, err := s.Append(ctx, entry.User(question), entry.Assistant("At noon.")); err != nil {
			panic(err)
		}
		if _, err := s.Commit(ctx, coppice.Turn{State: map[string]int{"asked": turn + 1}}); err != nil {
			panic(err)
		}
	}
	return store, s
}

// What an agent does with a turn, whatever happens to its commit.
func ExampleSession_Settle() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	commit := func(t coppice.Turn) (coppice.Receipt, error) {
		r, err := s.Commit(ctx, t)
		if errors.Is(err, coppice.ErrCommitUnknown) {
			r, err = s.Settle(ctx, "") // a turn with a Key can be committed again as well
		}
		if errors.Is(err, coppice.ErrConflict) || errors.Is(err, coppice.ErrFenced) {
			t.KeepBoth = true
			r, err = s.Commit(ctx, t)
		}
		if err == nil && r.Kept != "" {
			err = s.Reload(ctx) // it is on a branch: the handle goes to the winner's line
		}
		return r, err
	}
	r, err := commit(coppice.Turn{Entries: []transcript.Draft{entry.User("And the day after?")}})
	fmt.Println(r.Entries, r.Kept == "", err)
	// Output:
	// 1 true <nil>
}

// Two hosts work on one session. The second to commit gets an error, and decides what happens to its turn.
func ExampleSession_Commit_conflict() {
	ctx := context.Background()
	store, a := exampleStore(ctx)
	defer store.Close()
	b, err := store.Open(ctx, "harbour", nil)
	if err != nil {
		panic(err)
	}
	a.Append(ctx, entry.User("asked on host A"))
	a.Commit(ctx, coppice.Turn{})

	b.Append(ctx, entry.User("asked on host B"))
	_, err = b.Commit(ctx, coppice.Turn{})
	fmt.Println("conflict:", errors.Is(err, coppice.ErrConflict))
	r, err := b.Commit(ctx, coppice.Turn{KeepBoth: true}) // keeps the turn; Reload alone drops it
	if err != nil {
		panic(err)
	}
	fmt.Println("kept as a branch:", r.Kept != "")
	if err := b.Reload(ctx); err != nil { // to the winner's head
		panic(err)
	}
	c, _ := b.Context(ctx)
	fmt.Println("the session goes on from:", c.Messages[len(c.Messages)-1].Text())

	b.Append(ctx, entry.User("not wanted after all"))
	if err := b.Discard(ctx); err != nil { // drops what is not committed
		panic(err)
	}
	c, _ = b.Context(ctx)
	fmt.Println("messages:", len(c.Messages))
	// Output:
	// conflict: true
	// kept as a branch: true
	// the session goes on from: asked on host A
	// messages: 5
}

// A new host takes over from one that may be dead, or only slow.
func ExampleSession_Claim() {
	ctx := context.Background()
	store, slow := exampleStore(ctx)
	defer store.Close()
	s, err := store.Open(ctx, "harbour", nil)
	if err != nil {
		panic(err)
	}
	if _, err := s.Claim(ctx); err != nil {
		panic(err)
	}
	slow.Append(ctx, entry.Assistant("I am still here."))
	_, err = slow.Commit(ctx, coppice.Turn{})
	fmt.Println("the old host is fenced:", errors.Is(err, coppice.ErrFenced))
	// Output:
	// the old host is fenced: true
}

// An agent of its own chooses what its model sees next.
func ExampleSession_SetContext() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	summary := transcript.Item{Message: []byte(`{"role":"user","content":"We spoke of the tides."}`)}
	if err := s.SetContext(ctx, summary); err != nil {
		panic(err)
	}
	s.Append(ctx, entry.User("And tomorrow?"))
	s.Commit(ctx, coppice.Turn{})
	c, err := s.Context(ctx)
	if err != nil {
		panic(err)
	}
	for _, m := range c.Messages {
		fmt.Println(m.Text())
	}
	fmt.Printf("of a session of %d entries, by the rules of profile %q\n", s.Info().Entries, s.Profile())
	// Output:
	// We spoke of the tides.
	// And tomorrow?
	// of a session of 5 entries, by the rules of profile ""
}

// Any commit can be read as it was: by its number, a tag, an entry, a time.
func ExampleSession_At() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	if _, err := s.Snapshot(ctx, "before the storm"); err != nil {
		panic(err)
	}
	for info, err := range s.Snapshots(ctx) {
		fmt.Println(info.Tag, err)
	}
	var first coppice.Target
	if err := first.UnmarshalText([]byte("seq:1")); err != nil { // as the command line writes it
		panic(err)
	}
	v, err := s.At(ctx, first)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s on branch %s\n", first, v.Document().State, v.Document().Branch)
	// Output:
	// before the storm <nil>
	// seq:1: {"asked":1} on branch main
}

// Between two times that are far apart there may be a million entries: a few are enough to show what there is.
func ExampleView_DiffLimit() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	s.Append(ctx, entry.User("And tomorrow?"), entry.Assistant("At one."), entry.User("And then?"))
	s.Commit(ctx, coppice.Turn{State: map[string]int{"asked": 3}})
	then, err := s.At(ctx, coppice.Target{Seq: 1})
	if err != nil {
		panic(err)
	}
	now, err := s.At(ctx, coppice.Target{})
	if err != nil {
		panic(err)
	}
	d, err := then.DiffLimit(ctx, now, 1)
	if err != nil {
		panic(err)
	}
	m, _ := d.OnlyB[0].Message()
	fmt.Printf("%s, and %d more; state %s\n", m.Text(), d.MoreB, d.State)
	// Output:
	// And low water?, and 4 more; state [{"op":"replace","path":"/asked","value":3}]
}

// A session comes in from lines of pi's format, grows with its file, and goes out as the bytes that it was.
func ExampleStore_Import() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	lines := []string{
		`{"type":"session","version":3,"id":"5e55","timestamp":"2026-11-20T10:00:00.000Z","cwd":"/home/x/tides"}`,
		`{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"When is high water?"}}`,
		`{"type":"message","id":"a2","parentId":"a1","message":{"role":"assistant","content":"At noon."}}`,
	}
	read := func(n int) iter.Seq2[transcript.Draft, error] { // packages below interop read files like this one
		return func(yield func(transcript.Draft, error) bool) {
			for _, line := range lines[:n] {
				if !yield(entry.Line([]byte(line)), nil) {
					return
				}
			}
		}
	}
	o := &coppice.SessionOptions{ID: "tides", Profile: transcript.Pi}
	if _, err := store.Import(ctx, read(2), o); err != nil {
		panic(err)
	}
	_, added, err := store.Grow(ctx, read(3), o) // the program has written another line since
	if err != nil {
		panic(err)
	}
	var file strings.Builder
	if err := store.Export(ctx, "tides", &file); err != nil {
		panic(err)
	}
	// The file was touched: with SessionOptions.Source, the next import knows it by this time.
	if err := store.Renew(ctx, "tides", int64(file.Len()), time.Unix(1_800_000_000, 0)); err != nil {
		panic(err)
	}
	fmt.Println("added:", added)
	fmt.Println("the same bytes:", file.String() == strings.Join(lines, "\n")+"\n")
	if err := store.ExportPi(ctx, "tides", io.Discard); err != nil { // with what was committed here
		panic(err)
	}
	fmt.Println("dropped:", store.DropImport(ctx, "tides", "")) // refused if anything but imports was committed
	// Output:
	// added: 1
	// the same bytes: true
	// dropped: <nil>
}

// Of a file that grew only its last known line and the new ones are read.
func ExampleStore_GrowFrom() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	lines := func(list ...string) iter.Seq2[transcript.Draft, error] {
		return func(yield func(transcript.Draft, error) bool) {
			for _, line := range list {
				if !yield(entry.Line([]byte(line)), nil) {
					return
				}
			}
		}
	}
	source := func(n int64, line string) func() (*checkpoint.Source, error) {
		return func() (*checkpoint.Source, error) { // hashes of the file's first n bytes
			sum := strings.Repeat("0", 64)
			return &checkpoint.Source{
				Program: "pi", Session: "5e55", Bytes: n, SHA256: sum, Head: sum, Tail: sum,
				Resume: &checkpoint.Resume{Hash: sum, Entry: line},
			}, nil
		}
	}
	const a1 = `{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"When is high water?"}}`
	const a2 = `{"type":"message","id":"a2","parentId":"a1","message":{"role":"assistant","content":"At noon."}}`
	s, err := store.Import(ctx, lines(`{"type":"session","version":3,"id":"5e55"}`, a1),
		&coppice.SessionOptions{ID: "tides", Source: source(145, "a1")})
	if err != nil {
		panic(err)
	}
	more := func() (io.Reader, error) { return nil, nil }
	added, err := store.GrowFrom(ctx, s, lines(a1, a2), source(240, "a2"), more)
	fmt.Println("added:", added, err)
	// Output: added: 1 <nil>
}

// A store is checked, mended and tidied session by session; "" is all of them.
func ExampleStore_Verify() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	s.Close()
	report, err := store.Verify(ctx, "", true) // deep: every byte is read
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d session, problems: %v\n", report.Sessions, report.Problems)
	if len(report.Problems) > 0 {
		const dryRun = false // true = only say what would be done
		if _, err := store.Repair(ctx, "", dryRun); err != nil {
			panic(err)
		}
	}
	if report, err = store.GC(ctx, "harbour", false); err != nil {
		panic(err)
	}
	fmt.Println("garbage:", report.Removed)
	if err := store.Delete(ctx, "harbour"); err != nil {
		panic(err)
	}
	_, err = store.Open(ctx, "harbour", nil)
	fmt.Println("deleted:", errors.Is(err, coppice.ErrDeleted))
	// Output:
	// 1 session, problems: []
	// garbage: 0
	// deleted: true
}

// Small documents ride with the commits of a session, its metadata can change, and entries are found across sessions.
func ExampleStore_Query() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	step := func(n int) transcript.Draft { return entry.Custom("app.step", map[string]int{"n": n}) }
	_, err := s.Commit(ctx, coppice.Turn{
		Entries: []transcript.Draft{step(1), step(2)},
		Docs:    map[string]any{"app:plan": []string{"ask", "answer"}},
	})
	if err != nil {
		panic(err)
	}
	blue := "blue"
	if _, err := s.SetInfo(ctx, coppice.InfoChange{Meta: map[string]*string{"team": &blue}}); err != nil {
		panic(err)
	}
	for name, text := range s.Docs() {
		fmt.Printf("%s: %s\n", name, text)
	}
	v, err := s.At(ctx, coppice.Target{Seq: 1})
	if err != nil {
		panic(err)
	}
	for name := range v.Docs() {
		fmt.Println("not at seq 1:", name)
	}
	var plan []string
	fmt.Println(v.Doc("app:plan", &plan), plan)
	fmt.Println(s.Doc("app:plan", &plan), plan)

	o := coppice.QueryOptions{Meta: map[string]string{"team": "blue"}, Custom: "app.step", Match: map[string]any{"data.n": 2}}
	for m, err := range store.Query(ctx, o) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", m.Session, m.Entry.Raw[len(m.Entry.Raw)-8:])
	}
	// Output:
	// app:plan: ["ask","answer"]
	// <nil> []
	// <nil> [ask answer]
	// harbour: {"n":2}}
}

// An image is stored apart from the entries, once, and can be read alone.
func ExampleSession_Blob() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := store.Create("pictures", nil)
	if err != nil {
		panic(err)
	}
	picture := bytes.Repeat([]byte("\x89PNG"), 10_000)
	shown := entry.User("What is this?", entry.Image("image/png", picture))
	if _, err := s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{shown}}); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(picture)
	data, err := s.Blob(ctx, hex.EncodeToString(sum[:]))
	fmt.Println(bytes.Equal(data, picture), err)
	// Output: true <nil>
}

// A list of messages needs no pictures, and is not ended by one that is gone.
func ExampleImageRefs() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	shown := entry.User("What is this?", entry.Image("image/png", make([]byte, 40_000)))
	if _, err := s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{shown}}); err != nil {
		panic(err)
	}
	for e, err := range s.Page(coppice.ImageRefs(ctx), coppice.Page{Reverse: true, Limit: 1}) {
		fmt.Println(bytes.Contains(e.Raw, []byte("coppice-blob:sha256:")), err)
	}
	// Output: true <nil>
}

// A rollback is asked for again, because its answer was lost: it is made once.
func ExampleWithKey() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	for range 2 {
		r, err := s.Rollback(ctx, coppice.Target{Seq: 1}, coppice.WithKey("back-to-the-plan"))
		fmt.Println(r.Seq, r.Repeated, err)
	}
	// Output:
	// 3 false <nil>
	// 3 true <nil>
}

// A program that continues a session can see whether a disk has lost the end of it.
func ExampleSession_Info() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	if seq := s.Info().Missing; seq > 0 {
		fmt.Printf("commit %d was made and is lost: repair the session first\n", seq)
		return
	}
	fmt.Println("nothing is missing")
	// Output: nothing is missing
}

// A text is looked for in all branches; entries whose line cannot have it are not read any further.
func ExampleSession_EntriesWith() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	tree, err := s.Tree(ctx)
	if err != nil {
		panic(err)
	}
	for n, err := range tree.SearchIn("water", s.EntriesWith(ctx, "water")) {
		if err != nil {
			panic(err)
		}
		fmt.Println(n.Preview)
	}
	// Output:
	// When is high water?
	// And low water?
}

// What is intact of a damaged session is read before it is repaired.
func ExampleStore_Salvage() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	s.Close()
	s, err := store.Salvage(ctx, "harbour")
	if err != nil {
		panic(err)
	}
	n := 0
	for _, err := range s.Entries(ctx) {
		if err != nil {
			break // the damage, after all that is intact
		}
		n++
	}
	fmt.Printf("%d entries, damage: %q\n", n, s.Info().Cause)
	// Output: 4 entries, damage: ""
}

// What a repair would leave is checked before anything is repaired.
func ExampleStore_Repaired() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	s.Close()
	intact, err := store.Repaired(ctx, "harbour")
	if err != nil {
		panic(err)
	}
	report, err := intact.Verify(ctx, "harbour", true)
	fmt.Println(len(report.Problems), err)
	// Output: 0 <nil>
}

// A session is deleted only if no one committed to it since it was looked at.
func ExampleStore_DeleteAt() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	seen := s.Head().Commit
	s.Append(ctx, entry.User("One more question."))
	s.Commit(ctx, coppice.Turn{})
	fmt.Println(errors.Is(store.DeleteAt(ctx, "harbour", seen), coppice.ErrConflict))
	fmt.Println(store.DeleteAt(ctx, "harbour", s.Head().Commit))
	// Output:
	// true
	// <nil>
}

// A session is copied to another store, with its log of commits.
func ExampleStore_Copy() {
	ctx := context.Background()
	store, s := exampleStore(ctx)
	defer store.Close()
	s.Close()
	backup, err := coppice.Open(ctx, "mem:", nil)
	if err != nil {
		panic(err)
	}
	defer backup.Close()
	c, err := backup.Copy(ctx, store, "harbour", "harbour")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Head() == s.Head())
	// Output: true
}
