package handle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// truth is the content of a store in a fresh handle.
type truth struct {
	s       *coppice.Session    // the fresh handle; nil = there is no session
	commits []checkpoint.Commit // by seq
	docs    map[string]string   // the state after each, by its id, if it was read; shared with the run
	byText  map[string][]transcript.Entry
	byID    map[string]transcript.Entry
}

// fresh opens the session of a store as a new process does.
func fresh(on backend.Backend, readOnly bool, clock func() time.Time) (*coppice.Session, error) {
	store, err := coppice.New(on, options("judge", 99, clock))
	if err != nil {
		return nil, err
	}
	return store.Open(context.Background(), session, &coppice.SessionOptions{ReadOnly: readOnly})
}

// read returns the truth of a store; without a session it is empty.
func (r *run) read(on backend.Backend) (*truth, error) {
	s, err := fresh(on, true, r.clock)
	if errors.Is(err, fs.ErrNotExist) {
		return &truth{}, nil
	}
	if err != nil {
		return nil, err
	}
	t, err := r.readFrom(s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return t, nil
}

func (t *truth) close() {
	if t != nil && t.s != nil {
		_ = t.s.Close()
	}
}

// doc returns the state after the commit at an index of the log.
func (t *truth) doc(i int) string {
	id := t.commits[i].Commit
	if t.docs[id] == "" {
		v, err := t.s.At(context.Background(), coppice.Target{Commit: id})
		if err != nil {
			return err.Error()
		}
		t.docs[id] = string(v.Document().State)
	}
	return t.docs[id]
}

func (r *run) readFrom(s *coppice.Session) (*truth, error) {
	ctx := context.Background()
	t := &truth{s: s, docs: r.docs, byText: map[string][]transcript.Entry{}, byID: map[string]transcript.Entry{}}
	for c, err := range s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		t.commits = append(t.commits, c)
	}
	slices.Reverse(t.commits)
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return nil, fmt.Errorf("entries: %w", err)
		}
		t.byID[e.ID] = e
		if m, ok := e.Message(); ok {
			t.byText[m.Text()] = append(t.byText[m.Text()], e)
		} else if e.Type == "label" {
			var l struct{ Label string }
			if err := e.Decode(&l); err != nil {
				return nil, err
			}
			t.byText[l.Label] = append(t.byText[l.Label], e)
		}
	}
	return t, nil
}

// of returns the indexes in the log of the commits that a turn made: those with its reason, or with its key and
// content.
func (t *truth) of(c *record) (list []int) {
	for i, o := range t.commits {
		if c.key != "" && o.Key == c.key && t.doc(i) == c.doc || c.key == "" && o.Reason == c.needle() {
			list = append(list, i)
		}
	}
	return list
}

// at returns the index in the log of a commit; -1 = it is not there.
func (t *truth) at(commit string) int {
	return slices.IndexFunc(t.commits, func(c checkpoint.Commit) bool { return c.Commit == commit })
}

// kept reports whether a commit keeps a turn that lost: it does not move the session.
func (t *truth) kept(i int) bool {
	return t.commits[i].Kept != "" && t.commits[i].Kept == t.commits[i].Branch
}

// place is head, branch and document.
type place struct{ entry, branch, doc string }

// session returns the place of the session after the commit at an index of the log.
func (t *truth) session(i int) place {
	for i > 0 && t.kept(i) {
		i--
	}
	if i < 0 {
		return place{}
	}
	return place{t.commits[i].Entry, t.commits[i].Branch, t.doc(i)}
}

// claim returns the newest claim after one index of the log, up to another; -1 = there is none.
func (t *truth) claim(after, upto int) int {
	for i := min(upto, len(t.commits)-1); i > after; i-- {
		if t.commits[i].Reason == "claim" {
			return i
		}
	}
	return -1
}

// structure checks the rules for every history.
func (r *run) structure(t *truth) {
	for i, c := range t.commits {
		if c.Seq != uint64(i) && c.Seq != uint64(i)+t.commits[0].Seq {
			r.violate("log", "the log has seq %d at place %d", c.Seq, i)
		}
		if i > 0 && c.Parent != t.commits[i-1].Commit {
			r.violate("log", "commit seq %d does not name the one before it as its parent", c.Seq)
		}
	}
	var keyed []uint64
	for _, c := range t.commits {
		if c.Key != "" {
			keyed = append(keyed, c.Seq)
		}
	}
	if len(keyed) > 1 { // whatever the content: the other one is refused
		r.violate("key twice", "the one key was applied with seqs %d", keyed)
	}
	for text, list := range t.byText {
		if len(list) > 1 {
			r.violate("entry twice", "entry %q is stored %d times", text, len(list))
		}
	}
	for _, e := range t.byID {
		if p, ok := t.byID[e.ParentID]; e.ParentID != "" && (!ok || p.Ordinal >= e.Ordinal) {
			r.violate("parent", "an entry is stored before its parent: %s", e.Raw)
		}
	}
}

// message returns the JSON of the message with a text.
func message(text string) string {
	var body struct{ Message json.RawMessage }
	if err := json.Unmarshal(entry.User(text).Body, &body); err != nil {
		panic(err)
	}
	return string(body.Message)
}

// has reports whether a text is stored, with these bytes and, unless it is "", this id.
func (t *truth) has(text, id string) bool {
	list := t.byText[text]
	if len(list) != 1 {
		return false
	}
	if m, ok := list[0].Message(); ok && string(m.Raw) != message(text) {
		return false
	}
	return id == "" || list[0].ID == id
}

// look returns everything that the API shows of a session, as text, one item a line.
func look(s *coppice.Session) (string, error) {
	var b strings.Builder
	ctx := context.Background()
	info, err := json.Marshal(s.Info())
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "info %s\nhead %+v\n", info, s.Head())
	var state json.RawMessage
	if err := s.State(&state); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "state %s\n", state)
	c, err := s.Context(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range c.Messages {
		fmt.Fprintf(&b, "context %s %s\n", m.Entry, m.Raw)
	}
	fmt.Fprintf(&b, "settings %+v leaf %s explicit %v\n", c.Settings, c.Leaf, c.Explicit)
	tree, err := s.Tree(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "tree head %s\n", tree.Head())
	for n := range tree.Nodes(transcript.FilterAll) {
		fmt.Fprintf(&b, "node %d %s below %q, %s, label %q, on the path: %v\n",
			n.Ordinal, n.ID, n.ParentID, n.Type, n.Label, n.OnPath)
	}
	for _, br := range tree.Branches() {
		fmt.Fprintf(&b, "branch %s at %s\n", br.Name, br.Head)
	}
	return b.String(), nil
}

// differ returns the first lines in which two texts differ; "" = none.
func differ(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var p, q string
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return fmt.Sprintf("%.600s\n\t!= %.600s", p, q)
		}
	}
	return ""
}
