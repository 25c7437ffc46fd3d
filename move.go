package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// mainBranch is the name that every session starts with.
const mainBranch = "main"

// move is where a navigation goes, and what it brings along.
type move struct {
	at      place  // where the head goes; with drafts, where the first of them hangs
	branch  string // that the head is on afterwards; "" = as before
	drafts  []transcript.Draft
	doc     *checkpoint.Document // nil = the one in force there
	reason  string
	kept    string // names the line that is left
	stay    bool   // nothing to do if the head is there
	anchor  place  // the acknowledged place at or before at
	window  *transcript.PathWindow
	added   []*pending
	setting transcript.Settings
}

// into puts the move into a step.
func (mv *move) into(step *journal.Step) {
	step.Reason, step.Branch, step.Kept, step.Window = mv.reason, mv.branch, mv.kept, mv.window
	step.Keyframe = mv.reason == "rollback"
	at := mv.at.settled()
	if n := len(mv.added); n > 0 {
		at = place{id: mv.added[n-1].line.ID, ord: -1, p: mv.added[n-1]}
	}
	step.Head = &journal.Head{ID: at.id, Ord: at.ord}
	if at.p != nil {
		step.Head.Entry = at.p.e
	}
	doc := *mv.doc
	doc.Settings = mv.setting
	step.Edit = func(checkpoint.Document) checkpoint.Document { return doc }
}

// travel makes a move: one commit, which takes what is pending along. Where the line that is left keeps
// its name, what is pending is committed on it first. find says where to go; it is asked twice, since
// the hook between may change the session.
func (s *Session) travel(ctx context.Context, op string, find func(m *moment) (*move, error)) (Receipt, error) {
	err := s.writable(ctx)
	var summary string
	if hook := s.store.o.Hooks.BeforeMove; err == nil && hook != nil {
		var m *moment
		var mv *move
		if m, err = s.moment(ctx); err == nil {
			if mv, err = find(m); err == nil {
				if summary, err = hook(ctx, s, m.head.id, mv.at.id); err != nil {
					err = fmt.Errorf("hook: %w", err)
				}
			}
		}
	}
	if err != nil {
		return Receipt{}, s.fail(op, err)
	}
	s.gate.Lock()
	r, err := s.travelIn(ctx, op, find, summary)
	s.gate.Unlock()
	return r, s.after(r, s.fail(op, err))
}

func (s *Session) travelIn(ctx context.Context, op string, find func(m *moment) (*move, error), summary string) (Receipt, error) {
	before := s.b.IO()
	if err := s.j.Broken(); err != nil {
		return Receipt{}, err
	}
	m, mv, err := s.plan(ctx, find)
	if err != nil {
		return Receipt{}, err
	}
	if leaves := mv.branch != "" && mv.branch != m.st.Summary.Branch; leaves && len(m.open) > 0 {
		if _, err := s.commitIn(ctx, op, commitOptions{}); err != nil {
			return Receipt{}, err
		}
		if m, mv, err = s.plan(ctx, find); err != nil {
			return Receipt{}, err
		}
	}
	if mv.stay && mv.at.is(m.head) && (mv.branch == "" || mv.branch == m.st.Summary.Branch) && summary == "" {
		return Receipt{Head: s.Head(), IO: s.b.IO().Sub(before)}, nil
	}
	if summary != "" && mv.reason == "branch" && len(mv.drafts) == 0 {
		mv.drafts = []transcript.Draft{branchSummary(mv.at.id, summary)}
	}
	if err := s.prepare(ctx, m, mv); err != nil {
		return Receipt{}, err
	}
	r, err := s.commitIn(ctx, op, commitOptions{reason: mv.reason, move: mv})
	if err != nil {
		if !kept(err) { // the move's own entries go with it
			s.look(func(w *work) { w.drop(mv.added) })
		}
		return Receipt{}, err
	}
	r.Kept = mv.kept
	r.IO = s.b.IO().Sub(before)
	return r, nil
}

func (s *Session) plan(ctx context.Context, find func(m *moment) (*move, error)) (*moment, *move, error) {
	m, err := s.moment(ctx)
	if err != nil {
		return nil, nil, err
	}
	mv, err := find(m)
	return m, mv, err
}

// prepare reads what a move needs, document and window, and adds its entries to the pending ones.
func (s *Session) prepare(ctx context.Context, m *moment, mv *move) error {
	var err error
	if mv.doc == nil {
		var doc checkpoint.Document
		if doc, err = s.documentAt(ctx, m, mv.at); err != nil {
			return err
		}
		mv.doc = &doc
	}
	profile, bound := s.rules()
	mv.anchor = mv.at.settled()
	for mv.anchor.p != nil {
		mv.anchor = mv.anchor.p.at.settled()
	}
	if mv.window, err = s.windowAt(ctx, m, mv.anchor, profile, bound); err != nil {
		return err
	}
	here := mv.window
	if !mv.anchor.is(mv.at) {
		if here, err = s.windowAt(ctx, m, mv.at, profile, bound); err != nil {
			return err
		}
	}
	mv.setting = here.Context().Settings
	if len(mv.drafts) == 0 {
		return nil
	}
	drafts, err := s.screen(ctx, mv.drafts)
	if err != nil {
		return err
	}
	if mv.added, err = s.insert(ctx, drafts, &mv.at, false); err != nil {
		return err
	}
	var path []transcript.Entry
	doc := *mv.doc
	for i, p := range mv.added {
		path = append(path, entryOf(p.line, uint64(i)))
		if doc.Context != nil && speaks(p.line.Type) {
			doc.Context = append(slices.Clip(doc.Context), transcript.Item{Entry: p.line.ID})
		}
	}
	mv.doc, mv.setting = &doc, settings(profile, mv.setting, path)
	return nil
}

// documentAt gives the document in force at a place: that of the newest commit on the way to the root. An
// explicit context grows by what was said since.
func (s *Session) documentAt(ctx context.Context, m *moment, at place) (checkpoint.Document, error) {
	ord, ok := m.ordinal(at)
	commit, found := uint64(0), false
	if ok {
		commit, found = m.tree.CommitOn(ord)
	} else {
		commit, found = m.rootCommit()
	}
	if !found {
		return checkpoint.Document{}, nil
	}
	mo := journal.Moment{Doc: m.st.Doc, Commit: m.st.Newest()}
	if commit+1 != m.st.Next { // the newest line is the newest commit's
		var err error
		if mo, err = s.j.CommitLine(ctx, m.st, commit); err != nil {
			return checkpoint.Document{}, err
		}
	}
	if mo.Doc.Context == nil || !ok {
		return mo.Doc, nil
	}
	var since []transcript.Item
	for up := range m.up(ord) {
		if int64(up) == mo.Commit.HeadOrd {
			break
		}
		if n := m.tree.NodeAt(up); speaks(n.Type) {
			since = append(since, transcript.Item{Entry: n.ID})
		}
	}
	slices.Reverse(since)
	mo.Doc.Context = append(slices.Clip(mo.Doc.Context), since...)
	return mo.Doc, nil
}

// rootCommit is the newest commit that was made before every root.
func (m *moment) rootCommit() (uint64, bool) {
	for ord := m.st.Next; ord > 0; ord-- {
		if _, ok := m.tree.Parent(ord - 1); ok {
			continue
		}
		if c, ok := m.tree.CommitOn(ord - 1); ok && c == ord-1 {
			return c, true
		}
	}
	return 0, false
}

// branchAt is the branch that the head is on after a move without a name: the one whose head is there;
// the present one, where the move goes back on its own line; the nearest one below; else main.
func (m *moment) branchAt(at place) string {
	now := m.st.Summary.Branch
	names := map[string]string{}
	for _, b := range m.st.Branches {
		if _, ok := names[b.Head]; !ok || b.Name == now {
			names[b.Head] = b.Name
		}
	}
	if name, ok := names[at.id]; ok && at.id != "" {
		return name
	}
	ord, ok := m.ordinal(at)
	if !ok || m.tree.NodeAt(ord).OnPath {
		return now
	}
	for up := range m.up(ord) {
		if name, ok := names[m.tree.NodeAt(up).ID]; ok {
			return name
		}
	}
	return mainBranch
}

// Branch makes the head grow at an entry next (its id or a unique prefix; "" = a new root), and brings
// back the state in force there. Without a name the head stays on the branch of the line that it is on.
// fs.ErrExist if the name is another branch's.
func (s *Session) Branch(ctx context.Context, entry string, o *BranchOptions) (Receipt, error) {
	if o == nil {
		o = &BranchOptions{}
	}
	if len(o.Name) > checkpoint.MaxName {
		return Receipt{}, s.fail("branch", limitError("branch name", checkpoint.MaxName, len(o.Name)))
	}
	return s.travel(ctx, "branch", func(m *moment) (*move, error) {
		mv := &move{at: place{ord: -1}, reason: "branch", branch: o.Name}
		if entry != "" {
			ord, err := m.find(entry)
			if err != nil {
				return nil, err
			}
			mv.at = m.place(ord)
		}
		if _, taken := m.st.Branch(o.Name); taken && o.Name != m.st.Summary.Branch {
			return nil, fmt.Errorf("branch %q: %w", o.Name, fs.ErrExist)
		}
		if o.Name == "" {
			mv.branch = m.branchAt(mv.at)
		}
		if o.Summary != "" {
			mv.drafts = []transcript.Draft{branchSummary(mv.at.id, o.Summary)}
		}
		return mv, nil
	})
}

// branchSummary is the entry that tells of a line that was left; from is where the new one begins.
func branchSummary(from, summary string) transcript.Draft {
	if from == "" {
		from = "root"
	}
	body, err := json.Marshal(struct {
		From    string `json:"fromId"`
		Summary string `json:"summary"`
	}{from, summary})
	return transcript.Draft{Type: "branch_summary", Body: body, Err: err}
}

// Switch goes to a branch by name, or to the newest leaf below an entry (its id or a unique prefix), and
// brings back the state in force there. Where the head is there already nothing is committed.
func (s *Session) Switch(ctx context.Context, entryOrBranch string) (Receipt, error) {
	return s.travel(ctx, "switch", func(m *moment) (*move, error) {
		if b, ok := m.st.Branch(entryOrBranch); ok {
			return &move{at: place{id: b.Head, ord: b.Ord}, reason: "branch", branch: b.Name, stay: true}, nil
		}
		ord, err := m.find(entryOrBranch)
		if err != nil {
			return nil, err
		}
		leaf, ok := m.tree.Newest(m.tree.NodeAt(ord).ID)
		if !ok {
			return nil, missing("entry", entryOrBranch)
		}
		at := m.place(leaf.Ordinal)
		return &move{at: at, reason: "branch", branch: m.branchAt(at), stay: true}, nil
	})
}

// Edit makes d a sibling of an entry, and the head, with the state in force before that entry. What d
// says of its parent does not count.
func (s *Session) Edit(ctx context.Context, entry string, d transcript.Draft) (Receipt, error) {
	if d.Raw != nil {
		return Receipt{}, s.fail("edit", errors.New("a whole line brings its own place: use Append"))
	}
	d.Parent = ""
	return s.travel(ctx, "edit", func(m *moment) (*move, error) {
		ord, err := m.find(entry)
		if err != nil {
			return nil, err
		}
		at := place{ord: -1}
		if parent, ok := m.tree.Parent(ord); ok {
			at = m.place(parent)
		}
		return &move{at: at, reason: "branch", branch: m.branchAt(m.place(ord)), drafts: []transcript.Draft{d}}, nil
	})
}

// Label names an entry for people; "" clears. The head stays.
func (s *Session) Label(ctx context.Context, entry, label string) (Receipt, error) {
	err := s.writable(ctx)
	var at place
	if err == nil {
		at, err = s.locate(ctx, entry)
	}
	var drafts []transcript.Draft
	if err == nil {
		drafts, err = s.screen(ctx, []transcript.Draft{labelDraft(at.id, label)})
	}
	if err == nil {
		_, err = s.insert(ctx, drafts, nil, false)
	}
	if err != nil {
		return Receipt{}, s.fail("label", err)
	}
	return s.commit(ctx, "label", commitOptions{reason: "label"})
}

func labelDraft(target, label string) transcript.Draft {
	body, err := json.Marshal(struct {
		Target string `json:"targetId"`
		Label  string `json:"label,omitempty"`
	}{target, label})
	return transcript.Draft{Type: "label", Body: body, Err: err}
}
