package demostore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"testing"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

func build(t *testing.T) backend.Backend {
	t.Helper()
	b := memory.New()
	testutil.OK(t, Build(t.Context(), b))
	return b
}

func openStore(t *testing.T, b backend.Backend) *coppice.Store {
	t.Helper()
	st := testutil.Must(coppice.New(b, nil))(t)
	t.Cleanup(func() { testutil.OK(t, st.Close()) })
	return st
}

func openSession(t *testing.T, st *coppice.Store, id string) *coppice.Session {
	t.Helper()
	return testutil.Must(st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true}))(t)
}

// Ids of tool calls are unique in the session, across its writers: results and agents are found by them.
func TestCallsOfTools(t *testing.T) {
	b := build(t)
	h := openSession(t, openStore(t, b), Main)
	calls := map[string]string{}
	for e, err := range h.Entries(t.Context()) {
		testutil.OK(t, err)
		var m struct {
			Message struct {
				Role    string
				Content []struct{ Type, ID string }
			}
		}
		if json.Unmarshal(e.Raw, &m) != nil || m.Message.Role != "assistant" {
			continue
		}
		for _, c := range m.Message.Content {
			if c.Type != "toolCall" {
				continue
			}
			if other := calls[c.ID]; other != "" {
				t.Errorf("%s is a call of %s and of %s", c.ID, other, e.ID)
			}
			calls[c.ID] = e.ID
		}
	}
	if len(calls) < 60 {
		t.Errorf("%d calls", len(calls))
	}
}

// What a viewer shows of the main session: every kind of commit, and the state after each.
func TestMainSession(t *testing.T) {
	b := build(t)
	h := openSession(t, openStore(t, b), Main)
	reasons, writers := map[string]int{}, map[string]int{}
	kept, states, patches := []string{}, 0, 0
	before := json.RawMessage(nil)
	for s, err := range h.States(t.Context(), coppice.Target{}) {
		testutil.OK(t, err)
		reasons[s.Commit.Reason]++
		writers[s.Commit.Writer]++
		if s.Commit.Kept != "" {
			kept = append(kept, s.Commit.Kept[:4])
		}
		if len(s.Document.State) > 0 {
			states++
		}
		if !bytes.Equal(s.Document.State, before) {
			patches++
		}
		before = s.Document.State
	}
	if diff := cmp.Diff(map[string]int{
		"create": 1, "prompt": 37, "step": 69, "tools": 69, "answer": 30, "compaction": 1, "branch": 4, "rollback": 1,
		"conflict": 1, "note": 1,
	}, reasons); diff != "" {
		t.Errorf("commits by reason: %s", diff)
	}
	if diff := cmp.Diff(map[string]int{"mara-desktop:4711": 212, "fiona-laptop:2201": 2}, writers); diff != "" {
		t.Errorf("commits by writer: %s", diff)
	}
	// Newest first: Fiona's turn that lost, then the line that the rollback left.
	if diff := cmp.Diff([]string{"conf", "main"}, kept); diff != "" {
		t.Errorf("branches that were kept: %s", diff)
	}
	if states != 213 || patches != 210 {
		t.Errorf("%d commits have a state, and %d changes of it", states, patches)
	}
	var tags []string
	for s, err := range h.Snapshots(t.Context()) {
		testutil.OK(t, err)
		tags = append(tags, s.Tag)
	}
	// The one without a tag was taken before the compaction.
	if diff := cmp.Diff([]string{"v0.2.0", "", "tests-green"}, tags); diff != "" {
		t.Errorf("tags of snapshots, newest first: %s", diff)
	}
}

// Entries of the bundled session keep their bytes, also their times, and what follows adds each kind that it lacks.
func TestEntries(t *testing.T) {
	b := build(t)
	h := openSession(t, openStore(t, b), Main)
	lines, bundled, kinds, images := map[string][]byte{}, 0, map[string]int{}, 0
	for _, l := range bytes.Split(bytes.TrimSpace(session.JSONL()), []byte("\n"))[1:] {
		lines[testutil.Must(transcript.ParseLine(l))(t).ID] = l
	}
	for e, err := range h.Entries(t.Context()) {
		testutil.OK(t, err)
		if bytes.Equal(lines[e.ID], e.Raw) {
			bundled++
		}
		kinds[e.Type]++
		if bytes.Contains(e.Raw, []byte(`"mimeType":"image/png"`)) {
			images++
			checkPicture(t, e)
		}
	}
	if bundled != 305 || len(lines) != 305 || images != 1 {
		t.Errorf("%d of %d entries as they were, %d images", bundled, len(lines), images)
	}
	if diff := cmp.Diff(map[string]int{
		"message": 298, "label": 11, "thinking_level_change": 5, "model_change": 3, "session_info": 2,
		"branch_summary": 1, "compaction": 1, "custom_message": 1,
	}, kinds); diff != "" {
		t.Errorf("entries by type: %s", diff)
	}
	tree := testutil.Must(h.Tree(t.Context()))(t)
	forks := 0
	for n := range tree.Nodes(transcript.FilterAll) {
		if len(tree.Children(n.ID)) > 1 {
			forks++
		}
	}
	// Three of the bundled session, the prompt of two versions, and the turn that lost.
	if forks != 5 {
		t.Errorf("%d places with more than one version", forks)
	}
}

func checkPicture(t *testing.T, e transcript.Entry) {
	t.Helper()
	var of struct {
		Message struct{ Content []struct{ Data []byte } }
	}
	testutil.OK(t, e.Decode(&of))
	img := testutil.Must(png.Decode(bytes.NewReader(of.Message.Content[1].Data)))(t)
	if size := img.Bounds().Size(); size.X != 480 || size.Y != 120 {
		t.Errorf("the picture is %v", size)
	}
	if at := img.At(240, 119); at != (color.RGBA{0x5e, 0x9d, 0xc4, 0xff}) {
		t.Errorf("the bottom of the sea is %v", at)
	}
	if len(of.Message.Content[1].Data) < 24<<10 {
		t.Error("the picture is too small to be stored as a blob")
	}
}

// The rollback takes the agent's state back too: files that the line that it left had made are gone from it.
func TestRollbackTakesStateBack(t *testing.T) {
	b := build(t)
	h := openSession(t, openStore(t, b), Main)
	const made = "internal/cache/cache.go"
	files := func(at coppice.Target) map[string]any {
		var s struct{ Files map[string]any }
		testutil.OK(t, testutil.Must(h.At(t.Context(), at))(t).State(&s))
		return s.Files
	}
	for c, err := range h.Log(t.Context(), coppice.Target{}) {
		testutil.OK(t, err)
		if c.Reason != "rollback" {
			continue
		}
		_, was := files(coppice.Target{Seq: c.Seq - 1})[made]
		_, is := files(coppice.Target{Seq: c.Seq})[made]
		if !was || is {
			t.Errorf("%s: before %v, after the rollback %v", made, was, is)
		}
		return
	}
	t.Error("no rollback")
}

// A viewer finds the agent of a call, at any depth, by the metadata of the child and by the result of the call.
func TestAgentsNameTheirCalls(t *testing.T) {
	b := build(t)
	st := openStore(t, b)
	agents, parents := []string{Windows, Fundy, Ranges}, []string{Main, Main, Fundy}
	for i, id := range agents {
		info := openSession(t, st, id).Info()
		if info.Parent != parents[i] || info.Relation != "agent" {
			t.Errorf("agent %d: parent %s, relation %q", i, info.Parent, info.Relation)
		}
		calls, results := 0, 0
		for e, err := range openSession(t, st, info.Parent).Entries(t.Context()) {
			testutil.OK(t, err)
			m, _ := e.Message()
			for _, c := range m.Calls() {
				if c.ID == info.Meta["call"] && c.Name == "agent" {
					calls++
				}
			}
			var of struct {
				Message struct {
					ToolCallID string
					Details    struct{ Session string }
				}
			}
			if e.Type == "message" {
				testutil.OK(t, e.Decode(&of))
			}
			if of.Message.Details.Session == id && of.Message.ToolCallID == info.Meta["call"] {
				results++
			}
		}
		if calls != 1 || results != 1 {
			t.Errorf("agent %d: %d calls, %d results", i, calls, results)
		}
	}
	if s := openSession(t, st, Ranges).Info().Status; s != "failed" {
		t.Errorf("the last agent is %s", s)
	}
}

func TestStoreIsSoundAndRepeatable(t *testing.T) {
	b := build(t)
	st := openStore(t, b)
	report := testutil.Must(st.Verify(t.Context(), "", true))(t)
	if report.Sessions != 6 || len(report.Problems) != 0 {
		t.Errorf("%d sessions, %v", report.Sessions, report.Problems)
	}
	second := openStore(t, build(t))
	for _, id := range []string{Main, Fork, Gauge, Windows, Fundy, Ranges} {
		if diff := cmp.Diff(said(t, openSession(t, st, id)), said(t, openSession(t, second, id))); diff != "" {
			t.Errorf("session %s: %s", id, diff)
		}
	}
}

// said returns the lines of all entries, and what each commit did.
func said(t *testing.T, h *coppice.Session) (list []string) {
	t.Helper()
	for e, err := range h.Entries(t.Context()) {
		testutil.OK(t, err)
		list = append(list, string(e.Raw))
	}
	for s, err := range h.States(t.Context(), coppice.Target{}) {
		testutil.OK(t, err)
		list = append(list, fmt.Sprintf("%d %s %s %v %s", s.Commit.Seq, s.Commit.Reason, s.Commit.Entry, s.Commit.Time,
			s.Document.State))
	}
	return list
}
