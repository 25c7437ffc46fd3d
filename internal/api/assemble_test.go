package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/searchindex"
	"github.com/coppice-go/coppice/transcript"
)

// busy is a store in memory in which something happens whenever an image is read.
type busy struct {
	backend.Backend
	onImage func()
}

func (b *busy) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if strings.Contains(key, "blobs/") && b.onImage != nil {
		b.onImage()
	}
	return b.Backend.Get(ctx, key, r)
}

func sessionIn(t *testing.T, b backend.Backend) *coppice.Session {
	t.Helper()
	s, _ := sessionOf(t, b)
	return s
}

// sessionOf is sessionIn with the store.
func sessionOf(t *testing.T, b backend.Backend) (*coppice.Session, *coppice.Store) {
	t.Helper()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s, err := st.Create("s", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, st
}

// reopened returns the session on another handle, which has no image in memory.
func reopened(t *testing.T, s *coppice.Session, b backend.Backend) *coppice.Session {
	t.Helper()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if s, err = st.Open(t.Context(), s.ID(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t *testing.T, s *coppice.Session, state any, drafts ...transcript.Draft) coppice.Receipt {
	t.Helper()
	r, err := s.Commit(t.Context(), coppice.Turn{State: state, Entries: drafts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// State, context, head and numbers are of one commit, however often others commit meanwhile.
func TestResumedIsOfOneCommit(t *testing.T) {
	for _, meanwhile := range []int{0, 1, 1000} {
		b := &busy{Backend: memory.New()}
		s := sessionIn(t, b)
		// a handle does not keep it in memory: it is read again for each context
		image := base64.StdEncoding.EncodeToString(make([]byte, 17<<20))
		commit(t, s, 1, entry.Message(json.RawMessage(`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"`+image+`"}]}`)))
		s = reopened(t, s, b)
		n := 1
		ids := []string{s.Head().Entry}
		b.onImage = func() {
			if meanwhile--; meanwhile < 0 {
				return
			}
			n++
			commit(t, s, n, entry.User("more"))
			ids = append(ids, s.Head().Entry)
		}
		out, con, err := api.Resumed(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var state int
		if err := json.Unmarshal(out.State, &state); err != nil {
			t.Fatal(err)
		}
		if state != int(out.Seq) || len(out.Context) != state || con.Leaf != ids[state-1] || *out.Head != con.Leaf ||
			!out.Window.Complete {
			t.Errorf("seq %d with state %d, %d messages to %s, head %s", out.Seq, state, len(out.Context), con.Leaf, *out.Head)
		}
		if n == 1 && meanwhile >= 0 {
			t.Error("nothing came in between")
		}
	}
}

// The document of an empty session has null where nothing is, and no list is null.
func TestResumedEmpty(t *testing.T) {
	s := sessionIn(t, memory.New())
	commit(t, s, nil)
	out, _, err := api.Resumed(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	out.Commit = ""
	raw, err := json.Marshal(out)
	want := `{"session":"s","seq":1,"commit":"","head":null,"branch":"main","state":null,"context":[],` +
		`"window":{"complete":true,"omittedEntries":0},"openCalls":[],` +
		`"io":{"get":0,"put":0,"append":0,"stat":0,"list":0,"delete":0,"bytesRead":0,"bytesWritten":0}}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v\nwant %s", raw, err, want)
	}
}

const usageOfOne = `{"role":"assistant","provider":"p","model":"m","content":[],"usage":{"input":2,"output":3,"totalTokens":5}}`

// The usage of a session counts all branches, that of a path only its own, and that of no path is zero.
func TestUsageAddsUp(t *testing.T) {
	s, st := sessionOf(t, memory.New())
	answer := entry.Message(json.RawMessage(usageOfOne))
	commit(t, s, nil, entry.User("q"))
	question := s.Head().Entry
	commit(t, s, nil, answer)
	if _, err := s.Branch(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	commit(t, s, nil, answer, answer)
	leaf, err := api.Leaf(t.Context(), s, "")
	if err != nil || leaf != s.Head().Entry {
		t.Fatalf("%s, %v", leaf, err)
	}
	r := manager.NewUsageReader(st, nil)
	all, err1 := api.UsageOfSession(t.Context(), r, s)
	path, err2 := api.UsageOfPath(t.Context(), r, s, leaf)
	none, err3 := api.UsageOfPath(t.Context(), r, s, "")
	for i, tt := range []struct {
		got            api.Usage
		err            error
		scope          string
		answers, total int
		models         int
	}{{all, err1, "session", 3, 15, 1}, {path, err2, "path", 2, 10, 1}, {none, err3, "path", 0, 0, 0}} {
		u := tt.got.Usage
		if tt.err != nil || tt.got.Scope != tt.scope || u.Answers != tt.answers || u.Total != int64(tt.total) ||
			len(tt.got.Models) != tt.models || tt.got.Models == nil {
			t.Errorf("%d: %+v, %v", i, tt.got, tt.err)
		}
	}
}

// Rows of any range are those of the whole tree, with parents that are shown.
func TestRowsOfARange(t *testing.T) {
	s := sessionIn(t, memory.New())
	commit(t, s, nil, entry.User("one"), entry.Assistant("two"), entry.User("three"))
	tree, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ro, hits, err := api.RowOptions(t.Context(), s, tree, api.TreeQuery{Filter: transcript.FilterUserOnly, Search: "o"})
	if err != nil || len(hits) != 2 {
		t.Fatalf("%v, %v", hits, err)
	}
	ro.Found = nil
	r, err := rows.New(tree, ro)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(api.Rows(tree, r, 0, r.Len()))
	if len(all) != 2 || all[0].ParentID != nil || *all[1].ParentID != all[0].ID || all[1].Preview != "three" || all[1].Depth != 1 {
		t.Errorf("%+v", all)
	}
	if last := slices.Collect(api.Rows(tree, r, 1, 5)); len(last) != 1 || last[0].ID != all[1].ID {
		t.Errorf("%+v", last)
	}
	head, err := api.RowsHead(tree, r, ro, *all[1].ParentID)
	if err != nil || *head.Selected != all[0].ID || *head.Head != all[1].ID || head.HeadAt != nil {
		t.Errorf("%+v, %v", head, err)
	}
}

// A search of one session yields its matches in order, and counts what it read.
func TestFound(t *testing.T) {
	s := sessionIn(t, memory.New())
	commit(t, s, nil, entry.User("the harbour"), entry.Assistant("a boat"), entry.User("another Harbour"))
	q, err := searchindex.Parse("harbour")
	if err != nil {
		t.Fatal(err)
	}
	read, entries := 0, 0
	var got []string
	for m, err := range api.Found(t.Context(), s, q, func(n int) { read, entries = read+n, entries+1 }) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Snippet[m.Mark[0]:m.Mark[1]] == "" || !m.OnHead || !slices.Equal(m.Branches, []string{"main"}) {
			t.Errorf("%+v", m)
		}
		got = append(got, m.Snippet)
	}
	if !slices.Equal(got, []string{"the harbour", "another Harbour"}) || entries != 3 || read == 0 {
		t.Errorf("%q, %d entries of %d bytes", got, entries, read)
	}
}
