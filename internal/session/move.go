package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// mainBranch is the name that every session starts with.
const mainBranch = "main"

// move is where a navigation goes, and what it brings along.
type move struct {
	at      journal.Place // where the head goes; with drafts, where the first of them hangs
	branch  string        // that the head is on afterwards; "" = as before
	drafts  []transcript.Draft
	doc     *checkpoint.Document // nil = the one in force there
	reason  string
	kept    string // names the line that is left
	named   bool   // the caller chose the branch
	stay    bool   // nothing to do if the head is there
	window  *transcript.WorkingContext
	seen    uint64 // Step.Seen of the window
	outline checkpoint.Outline
	added   []*journal.Entry
	setting transcript.Settings
}

// MoveOptions of a move or an annotation.
type MoveOptions struct {
	Key    string // idempotency key, at most checkpoint.MaxName bytes; "" = none
	Base   string // id of the commit that it was made on; "" = the view
	Writer string // its name in the log; "" = Options.Journal.Writer
	digest string // of what the move does; "" without a key
}

// check refuses names that are too long or not text.
func (k *MoveOptions) check() error {
	return errors.Join(CheckName("idempotency key", k.Key), CheckName("writer", k.Writer))
}

// of returns the key for a move that does what the parts say: with another one the key is ErrKeyReused.
func (k MoveOptions) of(parts ...string) MoveOptions {
	if k.Key == "" {
		return k
	}
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	k.digest = hex.EncodeToString(h.Sum(nil)[:8])
	return k
}

// step is the move's.
func (mv *move) step(k MoveOptions) *journal.Step {
	step := &journal.Step{
		Move: true, Reason: mv.reason, Key: k.Key, Digest: k.digest, Writer: k.Writer, Branch: mv.branch,
		Kept: mv.kept, Window: mv.window, Seen: mv.seen, Keyframe: mv.reason == "rollback",
		Head: &mv.at, Entries: mv.added, Outline: &mv.outline, Edit: mv.edit(nil, mv.added),
	}
	if n := len(mv.added); n > 0 {
		at := journal.PlaceAt(mv.added[n-1])
		step.Head = &at
	}
	return step
}

// travel makes a move. find returns where to go. A move whose key is known is not made. The hook sees the drafts of a
// move before the lock is taken; the move is then made on the state that they were made for.
func (h *Handle) travel(
	ctx context.Context, k MoveOptions, find func(m *Moment) (*move, error),
) (journal.Result, error) {
	if err := k.check(); err != nil {
		return journal.Result{}, err
	}
	if err := h.Writable(ctx); err != nil {
		return journal.Result{}, err
	}
	before, mark := h.IO(), h.streamed()
	p := planned{k: k, find: find}
	if h.o.BeforeAppend != nil {
		p.screened, p.shown, p.err = h.show(ctx, find)
	}
	c := journal.Call{Key: k.Key, Digest: k.digest, Based: k.Base != ""}
	res, err := h.j.Write(ctx, c, func(ctx context.Context, on *state.State) (*journal.Step, error) {
		if h.ended(); k.Base == "" && h.uncommitted() {
			return nil, journal.ErrUncommitted
		}
		return h.prepared(ctx, &p, on)
	})
	if err != nil {
		return journal.Result{}, err
	}
	res.IO = h.IO().Sub(before)
	if res.Repeated && res.Commit.Entries == 1 { // the entry of an Edit, or a summary
		res.IDs = []string{res.Commit.Entry}
	}
	if res.Commit.Reason == "" || res.Repeated {
		return res, nil // the head is there
	}
	h.endPartial(mark, res.Commit.Seq)
	h.after(res)
	return res, nil
}

// planned is a move that waits for the lock.
type planned struct {
	k    MoveOptions
	find func(m *Moment) (*move, error)

	// Of a handle with a hook:
	screened []transcript.Draft // what the hook returned
	shown    *state.State       // the view that the hook was shown
	err      error              // why it was not called
}

// show calls the hook with the drafts that a move would bring along now.
func (h *Handle) show(
	ctx context.Context, find func(m *Moment) (*move, error),
) (drafts []transcript.Draft, shown *state.State, err error) {
	shown = h.State()
	m, err := h.Moment(ctx)
	if err != nil {
		return nil, nil, err
	}
	mv, err := find(m)
	if err != nil {
		return nil, nil, err
	}
	drafts, err = h.Screen(ctx, mv.drafts)
	return drafts, shown, err
}

// uncommitted reports whether the buffer holds anything.
func (h *Handle) uncommitted() (yes bool) {
	h.look(func(v *view) { yes = len(v.Open) > 0 || v.more() })
	return yes
}

// prepared finds out where a move goes, and makes its step on the newest state that is known.
func (h *Handle) prepared(ctx context.Context, p *planned, on *state.State) (*journal.Step, error) {
	var base *journal.Anchor
	m, err := h.Moment(ctx)
	switch {
	case p.k.Base != "":
		if base, err = h.baseOf(ctx, on, p.k.Base); err == nil {
			m, err = h.momentOn(ctx, on)
		}
	case p.shown != nil:
		base = journal.AnchorOf(p.shown)
	}
	if err != nil {
		return nil, err
	}
	mv, err := p.find(m)
	if err != nil {
		return nil, err
	}
	if h.o.NameLeft {
		nameLeft(m, mv)
	}
	there := mv.stay && mv.at.Is(m.Head) && (mv.branch == "" || mv.branch == m.State.Summary.Branch)
	if there && p.k.Key == "" { // a key is stored, so that a repeat is known
		return &journal.Step{Move: true, Base: base, Writer: p.k.Writer, Nothing: true}, nil
	}
	if h.o.BeforeAppend == nil {
		mv.drafts, err = h.Screen(ctx, mv.drafts)
	} else if err = p.err; err == nil {
		mv.drafts = p.screened
	}
	if err != nil {
		return nil, err
	}
	if err := h.prepare(ctx, m, mv, on); err != nil {
		return nil, err
	}
	step := mv.step(p.k)
	step.Base = base
	h.look(func(v *view) { step.Stay = v.more() })
	return step, nil
}

// prepare reads what a move needs, document and window, and makes its entries.
func (h *Handle) prepare(ctx context.Context, m *Moment, mv *move, on *state.State) error {
	path, err := h.arrive(ctx, m, mv)
	if err != nil {
		return err
	}
	if len(mv.drafts) > 0 {
		profile, _ := h.Rules()
		if path, err = h.grow(ctx, mv, profile, path, on); err != nil {
			return err
		}
	}
	mv.outline = state.Outline(path)
	return nil
}

// arrive reads the document and the window at the place where the head goes, and returns the entries of the window.
func (h *Handle) arrive(ctx context.Context, m *Moment, mv *move) ([]transcript.Entry, error) {
	if mv.doc == nil {
		doc, err := h.documentAt(ctx, m, mv.at)
		if err != nil {
			return nil, err
		}
		mv.doc = &doc
	}
	doc := *mv.doc
	if err := h.AmendItems(ctx, m, &doc); err != nil {
		return nil, err
	}
	mv.doc = &doc
	profile, bound := h.Rules()
	here, err := h.WindowAt(ctx, m, mv.at, profile, bound)
	if err != nil {
		return nil, err
	}
	if mv.at.Settled().Entry == nil && m.durable(mv.at) { // else its entries have no ordinals yet
		mv.window, mv.seen = here, m.State.Next
	}
	mv.setting = here.Context().Settings
	return here.Entries(), nil
}

// durable reports whether a place was acknowledged at that moment.
func (m *Moment) durable(at journal.Place) bool { return at.Settled().Ord < int64(m.State.Next) }

// grow makes the entries that a move brings along, and returns the path to them.
func (h *Handle) grow(
	ctx context.Context, mv *move, profile transcript.Profile, path []transcript.Entry, on *state.State,
) ([]transcript.Entry, error) {
	if err := unknown(mv.drafts); err != nil {
		return nil, err
	}
	known, err := h.parents(ctx, on, mv.drafts)
	if err != nil {
		return nil, err
	}
	if mv.added, _, err = h.build(mv.drafts, mv.at, known, h.j.Pending); err != nil {
		return nil, err
	}
	h.holdBlobs(mv.added)
	own := make([]transcript.Entry, len(mv.added))
	for i, e := range mv.added {
		own[i] = e.Head.Entry(0)
	}
	mv.setting = transcript.RestoreWorkingContext(profile, -1, mv.setting, 0, own).Settings()
	return append(slices.Clip(path), own...), nil
}

// documentAt returns the document in force at a place: that of the newest commit on the way to the root. An explicit
// context grows by what was said since.
func (h *Handle) documentAt(ctx context.Context, m *Moment, at journal.Place) (checkpoint.Document, error) {
	ord, ok := m.Ordinal(at)
	commit, found := uint64(0), false
	if ok {
		commit, found = m.Tree.CommitOn(ord)
	} else {
		commit, found = rootCommit(m)
	}
	if !found {
		return checkpoint.Document{}, nil
	}
	mo := store.Moment{Doc: m.State.Doc, Commit: m.State.Newest()}
	if commit+1 != m.State.Next || m.State.AfterKept { // else the newest line is the session's
		var err error
		if mo, err = h.j.CommitLine(ctx, m.State, commit); err != nil {
			return checkpoint.Document{}, err
		}
	}
	if mo.Doc.Context == nil || !ok {
		return mo.Doc, nil
	}
	var since []transcript.Item
	for up := range m.Up(ord) {
		if int64(up) == mo.Commit.HeadOrd {
			break
		}
		if n := m.Tree.NodeAt(up); Speaks(n.Type) {
			since = append(since, transcript.Item{Entry: n.ID})
		}
	}
	slices.Reverse(since)
	mo.Doc.Context = append(slices.Clip(mo.Doc.Context), since...)
	return mo.Doc, nil
}

// rootCommit is the newest commit that was made before every root.
func rootCommit(m *Moment) (uint64, bool) {
	for ord := m.State.Next; ord > 0; ord-- {
		if _, ok := m.Tree.Parent(ord - 1); ok {
			continue
		}
		if m.Tree.IsCommit(ord - 1) {
			return ord - 1, true
		}
	}
	return 0, false
}

// branchAt is the branch that the head is on after a move without a name: the one whose head is there;
// the present one, where the move goes back on its own line; the nearest one below; else main.
func branchAt(m *Moment, at journal.Place) string {
	now := m.State.Summary.Branch
	names := map[string]string{}
	for _, b := range m.State.Branches {
		if _, ok := names[b.Head]; !ok || b.Name == now {
			names[b.Head] = b.Name
		}
	}
	if name, ok := names[at.ID]; ok && at.ID != "" {
		return name
	}
	ord, ok := m.Ordinal(at)
	if !ok || m.Tree.NodeAt(ord).OnPath {
		return now
	}
	for up := range m.Up(ord) {
		if name, ok := names[m.Tree.ID(up)]; ok {
			return name
		}
	}
	return mainBranch
}

// Branch makes the head grow at an entry next; "" = a new root. A summary without text is none.
func (h *Handle) Branch(
	ctx context.Context, k MoveOptions, entry, name string, summary Summary,
) (journal.Result, error) {
	if err := CheckName("branch name", name); err != nil {
		return journal.Result{}, err
	}
	k = k.of("branch", entry, name, summary.Text, string(summary.Details))
	return h.travel(ctx, k, func(m *Moment) (*move, error) {
		mv := &move{at: journal.Place{Ord: -1}, reason: "branch", branch: name, named: name != ""}
		if entry != "" {
			ord, err := m.Find(entry)
			if err != nil {
				return nil, err
			}
			mv.at = m.Place(ord)
		}
		if _, taken := m.State.Branch(name); taken && name != m.State.Summary.Branch {
			return nil, fmt.Errorf("branch %q: %w", name, fs.ErrExist)
		}
		if name == "" {
			mv.branch = branchAt(m, mv.at)
		}
		if summary.Text != "" {
			mv.drafts = []transcript.Draft{summary.draft(mv.at.ID)}
		}
		return mv, nil
	})
}

// Summary describes a line that is left.
type Summary struct {
	Text     string
	Details  json.RawMessage // any JSON; nil = none
	FromHook bool
}

// draft is the entry of a summary; from is where the new line begins.
func (s Summary) draft(from string) transcript.Draft {
	if from == "" {
		from = "root"
	}
	if err := rawjson.CheckText("branch summary", s.Text); err != nil {
		return transcript.Draft{Type: "branch_summary", Err: err}
	}
	body, err := json.Marshal(struct {
		From     string          `json:"fromId"`
		Summary  string          `json:"summary"`
		Details  json.RawMessage `json:"details,omitempty"`
		FromHook bool            `json:"fromHook,omitempty"`
	}{from, s.Text, s.Details, s.FromHook})
	if err != nil {
		err = fmt.Errorf("branch summary: %w", err)
	}
	return transcript.Draft{Type: "branch_summary", Body: body, Err: err}
}

// Switch goes to a branch by name, or to the newest leaf below an entry.
func (h *Handle) Switch(ctx context.Context, k MoveOptions, entryOrBranch string) (journal.Result, error) {
	return h.travel(ctx, k.of("switch", entryOrBranch), func(m *Moment) (*move, error) {
		if b, ok := m.State.Branch(entryOrBranch); ok {
			return &move{
				at: journal.Place{ID: b.Head, Ord: b.Ord}, reason: "branch", branch: b.Name, named: true,
				stay: true,
			}, nil
		}
		ord, err := m.Find(entryOrBranch)
		if err != nil {
			return nil, err
		}
		leaf, ok := m.Tree.Newest(m.Tree.ID(ord))
		if !ok {
			return nil, Missing("entry", entryOrBranch)
		}
		at := m.Place(leaf.Ordinal)
		return &move{at: at, reason: "branch", branch: branchAt(m, at), stay: true}, nil
	})
}

// Edit makes d a sibling of an entry, and the head.
func (h *Handle) Edit(ctx context.Context, k MoveOptions, entry string, d transcript.Draft) (journal.Result, error) {
	if d.Raw != nil {
		return journal.Result{}, layout.BadInput("a complete line has its own parent: use Append")
	}
	d.Parent = ""
	return h.travel(ctx, k.of("edit", entry, d.Type, d.ID, string(d.Body)), func(m *Moment) (*move, error) {
		ord, err := m.Find(entry)
		if err != nil {
			return nil, err
		}
		at := journal.Place{Ord: -1}
		if parent, ok := m.Tree.Parent(ord); ok {
			at = m.Place(parent)
		}
		return &move{at: at, reason: "branch", branch: branchAt(m, m.Place(ord)), drafts: []transcript.Draft{d}}, nil
	})
}

// LabelDraft is the entry that names another.
func LabelDraft(target, label string) transcript.Draft {
	if err := rawjson.CheckText("label", label); err != nil {
		return transcript.Draft{Type: "label", Err: err}
	}
	body, err := json.Marshal(struct {
		Target string `json:"targetId"`
		Label  string `json:"label,omitempty"`
	}{target, label})
	return transcript.Draft{Type: "label", Body: body, Err: err}
}
