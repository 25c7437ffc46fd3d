package coppice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// MoveOption is an option of a move (Branch, Switch, Edit, Rollback), of an annotation (Label, SetInfo, Amend, Hide,
// RenameBranch) or of Claim.
type MoveOption func(*moveOptions)

// WithKey makes a move or an annotation one, however often and through whichever handle it is made, as Turn.Key does
// for a turn: the session remembers the key, at most 256 bytes, and a repeat does nothing and returns the receipt of
// the first time, with Repeated. The same key for another move, or for a turn, is ErrKeyReused.
func WithKey(key string) MoveOption { return func(o *moveOptions) { o.key = key } }

// WithBase names the commit that a move was made on, as Turn.Base does for a turn: it leaves alone what was appended,
// and is ErrConflict if branch, head or document differ since. An annotation is in conflict with a Claim since only.
func WithBase(commit string) MoveOption { return func(o *moveOptions) { o.base = commit } }

// WithWriter names who makes a move, an annotation or a claim, as Turn.Writer does for a turn.
func WithWriter(name string) MoveOption { return func(o *moveOptions) { o.writer = name } }

// moveOptions are what a MoveOption sets.
type moveOptions struct {
	key    string // idempotency key, at most checkpoint.MaxName bytes; "" = none
	base   string // id of the commit that it was made on; "" = the view
	writer string // its name in the log; "" = Options.Writer
	digest string // of what the move does; "" without a key
}

// optionsOf returns the options of a move that does what the parts describe: with other parts its key is ErrKeyReused.
func optionsOf(opts []MoveOption, parts ...string) (k moveOptions) {
	for _, o := range opts {
		o(&k)
	}
	if k.key == "" {
		return k
	}
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	k.digest = hex.EncodeToString(h.Sum(nil)[:8])
	return k
}

// check refuses names that are too long or not text.
func (k *moveOptions) check() error {
	return errors.Join(checkName("idempotency key", k.key), checkName("writer", k.writer))
}

// BranchOptions of Session.Branch.
type BranchOptions struct {
	Name    string // names the new branch; "" = the head is on the branch that the entry is on
	Summary string // adds a branch_summary entry of the path that is left, in the same commit

	Details  json.RawMessage // of the summary: data of its maker; nil = none
	FromHook bool            // a hook made the summary, not the program itself
}

// Branch moves the head to an entry (its id or a unique prefix; "" = before the first entry, so that the
// next one becomes a root), and restores the state in force there. Without a name the head is on the branch
// that the entry is on. It returns fs.ErrExist if another branch has the name.
func (s *Session) Branch(
	ctx context.Context, entry string, o *BranchOptions, opts ...MoveOption,
) (Receipt, error) {
	if o == nil {
		o = &BranchOptions{}
	}
	name := o.Name
	if err := checkName("branch name", name); err != nil {
		return Receipt{}, s.fail("branch", err)
	}
	k := optionsOf(opts, "branch", entry, name, o.Summary, string(o.Details))
	return s.move(ctx, "branch", k, func(m *treeView) (*move, error) {
		mv := &move{at: journal.Place{Ord: -1}, reason: "branch", branch: name, named: name != ""}
		if entry != "" {
			ord, err := m.find(entry)
			if err != nil {
				return nil, err
			}
			mv.at = m.place(ord)
		}
		if _, taken := m.State.Branch(name); taken && name != m.State.Summary.Branch {
			return nil, fmt.Errorf("branch %q: %w", name, fs.ErrExist)
		}
		if name == "" {
			mv.branch = branchAt(m, mv.at)
		}
		if o.Summary != "" {
			mv.drafts = []transcript.Draft{o.summary(mv.at.ID)}
		}
		return mv, nil
	})
}

// summary returns the entry of a summary; from is where the new line begins.
func (o *BranchOptions) summary(from string) transcript.Draft {
	if from == "" {
		from = "root"
	}
	if err := rawjson.CheckText("branch summary", o.Summary); err != nil {
		return transcript.Draft{Type: "branch_summary", Err: err}
	}
	body, err := json.Marshal(struct {
		From     string          `json:"fromId"`
		Summary  string          `json:"summary"`
		Details  json.RawMessage `json:"details,omitempty"`
		FromHook bool            `json:"fromHook,omitempty"`
	}{from, o.Summary, o.Details, o.FromHook})
	if err != nil {
		err = fmt.Errorf("branch summary: %w", err)
	}
	return transcript.Draft{Type: "branch_summary", Body: body, Err: err}
}

// Switch moves the head to a branch by name, or to the newest leaf below an entry (its id or a unique
// prefix), and restores the state in force there. If the head is there already nothing is committed, and the receipt
// names the newest commit of the handle.
func (s *Session) Switch(ctx context.Context, entryOrBranch string, opts ...MoveOption) (Receipt, error) {
	k := optionsOf(opts, "switch", entryOrBranch)
	return s.move(ctx, "switch", k, func(m *treeView) (*move, error) {
		if b, ok := m.State.Branch(entryOrBranch); ok {
			return &move{
				at: journal.Place{ID: b.Head, Ord: b.Ord}, reason: "branch", branch: b.Name, named: true,
				stay: true,
			}, nil
		}
		ord, err := m.find(entryOrBranch)
		if err != nil {
			return nil, err
		}
		leaf, ok := m.Tree.Newest(m.Tree.ID(ord))
		if !ok {
			return nil, missing("entry", entryOrBranch)
		}
		at := m.place(leaf.Ordinal)
		return &move{at: at, reason: "branch", branch: branchAt(m, at), stay: true}, nil
	})
}

// Edit appends d as a sibling of an entry and moves the head to it, with the state in force before that
// entry. Draft.Parent is ignored.
func (s *Session) Edit(
	ctx context.Context, entry string, d transcript.Draft, opts ...MoveOption,
) (Receipt, error) {
	if d.Raw != nil {
		return Receipt{}, s.fail("edit", layout.BadInput("a complete line has its own parent: use Append"))
	}
	d.Parent = ""
	k := optionsOf(opts, "edit", entry, d.Type, d.ID, string(d.Body))
	return s.move(ctx, "edit", k, func(m *treeView) (*move, error) {
		ord, err := m.find(entry)
		if err != nil {
			return nil, err
		}
		at := journal.Place{Ord: -1}
		if parent, ok := m.Tree.Parent(ord); ok {
			at = m.place(parent)
		}
		return &move{at: at, reason: "branch", branch: branchAt(m, m.place(ord)), drafts: []transcript.Draft{d}}, nil
	})
}

// Rollback restores state, context and head exactly as they were at a target, in a new commit on a new
// branch. The path that is left is kept as branch Receipt.Kept. ErrStateLost: the state there was lost; nothing moves.
func (s *Session) Rollback(ctx context.Context, t Target, opts ...MoveOption) (Receipt, error) {
	v, err := s.at(ctx, t)
	if err == nil && v.doc.StateLost() {
		err = ErrStateLost
	}
	if err != nil {
		return Receipt{}, s.fail("rollback", err)
	}
	k := optionsOf(opts, "rollback", t.String())
	return s.move(ctx, "rollback", k, func(m *treeView) (*move, error) {
		return &move{
			at: v.head.ByOrdinal(), reason: "rollback", branch: freeRollback(m.State, v.commit.Seq),
			kept: m.State.Summary.Branch, doc: &v.doc,
		}, nil
	})
}

// freeRollback names the branch of a rollback.
func freeRollback(st *state.State, seq uint64) string {
	taken := make(map[string]bool, len(st.Branches))
	for _, b := range st.Branches {
		taken[b.Name] = true
	}
	name := fmt.Sprintf("rollback-%d", seq)
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("rollback-%d-%d", seq, n)
	}
	return name
}

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

// step is the move's.
func (mv *move) step() *journal.Step {
	step := &journal.Step{
		Move: true, Reason: mv.reason, Branch: mv.branch, Kept: mv.kept, Window: mv.window, Seen: mv.seen,
		Keyframe: mv.reason == "rollback", Head: &mv.at, Entries: mv.added, Outline: &mv.outline,
		Edit: mv.edit(nil, mv.added),
	}
	if n := len(mv.added); n > 0 {
		at := journal.PlaceAt(mv.added[n-1])
		step.Head = &at
	}
	return step
}

// move makes a move. find returns where to go. A move whose key is known is not made. The hook sees the drafts of a
// move before the lock is taken; the move is then made on the state that they were made for.
func (s *Session) move(
	ctx context.Context, op string, k moveOptions, find func(m *treeView) (*move, error),
) (Receipt, error) {
	if err := k.check(); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	if err := s.writable(ctx); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	before, mark := s.IO(), s.streamed()
	p := planned{k: k, find: find}
	if s.store.o.Hooks.BeforeAppend != nil {
		p.screened, p.shown, p.err = s.show(ctx, find)
	}
	c := journal.Step{Key: k.key, Digest: k.digest, Writer: k.writer, Based: k.base != ""}
	res, err := s.j.Write(ctx, c, func(ctx context.Context, on *state.State) (*journal.Step, error) {
		if s.ended(); k.base == "" && s.uncommitted() {
			return nil, journal.ErrUncommitted
		}
		return s.prepared(ctx, &p, on)
	})
	switch {
	case err != nil:
	case res.Repeated && res.Commit.Entries == 1: // the entry of an Edit, or a summary
		res.IDs = []string{res.Commit.Entry}
	case res.Commit.Reason != "" && !res.Repeated: // else the head is there
		s.endPartial(mark, res.Commit.Seq)
	}
	return s.receipt(op, before, res, err)
}

// planned is a move that waits for the lock.
type planned struct {
	k    moveOptions
	find func(m *treeView) (*move, error)

	// Of a handle with a hook:
	screened []transcript.Draft // what the hook returned
	shown    *state.State       // the view that the hook was shown
	err      error              // why it was not called
}

// show calls the hook with the drafts that a move would bring along now.
func (s *Session) show(
	ctx context.Context, find func(m *treeView) (*move, error),
) (drafts []transcript.Draft, shown *state.State, err error) {
	shown = s.state()
	m, err := s.treeView(ctx)
	if err != nil {
		return nil, nil, err
	}
	mv, err := find(m)
	if err != nil {
		return nil, nil, err
	}
	drafts, err = s.screen(ctx, mv.drafts)
	return drafts, shown, err
}

// uncommitted reports whether the buffer holds anything.
func (s *Session) uncommitted() (yes bool) {
	s.look(func(v *liveState) { yes = len(v.Open) > 0 || v.more() })
	return yes
}

// prepared finds out where a move goes, and makes its step on the newest state that is known.
func (s *Session) prepared(ctx context.Context, p *planned, on *state.State) (*journal.Step, error) {
	var base *journal.Anchor
	m, err := s.treeView(ctx)
	switch {
	case p.k.base != "":
		if base, err = s.baseOf(ctx, on, p.k.base); err == nil {
			m, err = s.treeOn(ctx, on)
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
	if s.o.NameLeft {
		nameLeft(m, mv)
	}
	there := mv.stay && mv.at.Is(m.Head) && (mv.branch == "" || mv.branch == m.State.Summary.Branch)
	if there && p.k.key == "" { // a key is stored, so that a repeat is known
		return &journal.Step{Move: true, Base: base, Nothing: true}, nil
	}
	if s.store.o.Hooks.BeforeAppend == nil {
		mv.drafts, err = s.screen(ctx, mv.drafts)
	} else if err = p.err; err == nil {
		mv.drafts = p.screened
	}
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, m, mv, on); err != nil {
		return nil, err
	}
	step := mv.step()
	step.Base = base
	s.look(func(v *liveState) { step.Stay = v.more() })
	return step, nil
}

// prepare reads what a move needs, document and window, and makes its entries.
func (s *Session) prepare(ctx context.Context, m *treeView, mv *move, on *state.State) error {
	path, err := s.arrive(ctx, m, mv)
	if err != nil {
		return err
	}
	if len(mv.drafts) > 0 {
		profile, _ := s.rules()
		if path, err = s.grow(ctx, mv, profile, path, on); err != nil {
			return err
		}
	}
	mv.outline = state.Outline(path)
	return nil
}

// arrive reads the document and the window at the place where the head goes, and returns the entries of the window.
func (s *Session) arrive(ctx context.Context, m *treeView, mv *move) ([]transcript.Entry, error) {
	if mv.doc == nil {
		doc, err := s.documentAt(ctx, m, mv.at)
		if err != nil {
			return nil, err
		}
		mv.doc = &doc
	}
	doc := *mv.doc
	if err := s.amendItems(ctx, m, &doc); err != nil {
		return nil, err
	}
	mv.doc = &doc
	profile, bound := s.rules()
	here, err := s.windowAt(ctx, m, mv.at, profile, bound)
	if err != nil {
		return nil, err
	}
	if mv.at.ByOrdinal().Entry == nil && m.durable(mv.at) { // else its entries have no ordinals yet
		mv.window, mv.seen = here, m.State.Next
	}
	mv.setting = here.Settings()
	return here.Entries(), nil
}

// durable reports whether a place was acknowledged at that moment.
func (m *treeView) durable(at journal.Place) bool { return at.ByOrdinal().Ord < int64(m.State.Next) }

// grow makes the entries that a move brings along, and returns the path to them.
func (s *Session) grow(
	ctx context.Context, mv *move, profile transcript.Profile, path []transcript.Entry, on *state.State,
) ([]transcript.Entry, error) {
	if err := unknown(mv.drafts); err != nil {
		return nil, err
	}
	known, err := s.parents(ctx, on, mv.drafts)
	if err != nil {
		return nil, err
	}
	if mv.added, _, err = s.build(mv.drafts, mv.at, known, s.j.Pending); err != nil {
		return nil, err
	}
	s.holdBlobs(mv.added)
	own := make([]transcript.Entry, len(mv.added))
	for i, e := range mv.added {
		own[i] = e.Head.Entry(0)
	}
	mv.setting = transcript.RestoreWorkingContext(profile, -1, mv.setting, 0, own).Settings()
	return append(slices.Clip(path), own...), nil
}

// documentAt returns the document in force at a place: that of the newest commit on the way to the root. An explicit
// context grows by the messages since.
func (s *Session) documentAt(ctx context.Context, m *treeView, at journal.Place) (checkpoint.Document, error) {
	ord, ok := m.ordinal(at)
	commit, found := uint64(0), false
	if ok {
		commit, found = m.Tree.CommitOn(ord)
	} else {
		commit, found = rootCommit(m)
	}
	if !found {
		return checkpoint.Document{}, nil
	}
	mo := store.CommitState{Doc: m.State.Doc, Commit: m.State.Newest()}
	if commit+1 != m.State.Next || m.State.AfterKept { // else the newest line is the session's
		var err error
		if mo, err = s.j.CommitLine(ctx, m.State, commit); err != nil {
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
		if n := m.Tree.NodeAt(up); speaks(n.Type) {
			since = append(since, transcript.Item{Entry: n.ID})
		}
	}
	slices.Reverse(since)
	mo.Doc.Context = append(slices.Clip(mo.Doc.Context), since...)
	return mo.Doc, nil
}

// rootCommit is the newest commit that was made before every root.
func rootCommit(m *treeView) (uint64, bool) {
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
func branchAt(m *treeView, at journal.Place) string {
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
	ord, ok := m.ordinal(at)
	if !ok || m.Tree.NodeAt(ord).OnPath {
		return now
	}
	for up := range m.up(ord) {
		if name, ok := names[m.Tree.ID(up)]; ok {
			return name
		}
	}
	return mainBranch
}

// nameLeft makes a move name the line that it leaves, if no branch ends on it after the move: Options.NameLeft. A
// branch that the caller did not choose is not moved off the line that it names. A session with many names gets no more
// of these: the line that is left has none then, and is found by its entries.
func nameLeft(m *treeView, mv *move) {
	if mv.kept != "" || len(m.State.Branches) >= maxLeft {
		return
	}
	now := m.State.Summary.Branch
	to := mv.branch
	if to == "" {
		to = now
	}
	if b, ok := m.State.Branch(to); ok && !mv.named && to != now && b.Head != "" &&
		!m.passes(mv.at, journal.Place{ID: b.Head, Ord: b.Ord}) {
		to = freshName(m, to, "")
		mv.branch = to
	}
	if m.Head.ID == "" || m.passes(mv.at, m.Head) {
		return
	}
	for _, b := range m.State.Branches {
		if b.Name != to && b.Head != "" && m.passes(journal.Place{ID: b.Head, Ord: b.Ord}, m.Head) {
			return
		}
	}
	mv.kept = freshName(m, now, to)
}

// maxLeft bounds the names of a session to which moves add one of their own; the others are for callers.
const maxLeft = checkpoint.MaxBranches / 2

// passes reports whether the way from a place to its root passes another, or ends there.
func (m *treeView) passes(from, place journal.Place) bool {
	if from.Is(place) {
		return true
	}
	ord, ok := m.ordinal(from)
	at, known := m.ordinal(place)
	return ok && known && m.above(at, ord)
}

// freshName returns the first of base, base-2, base-3 and so on that names no branch, and is not another name that is
// about to.
func freshName(m *treeView, base, other string) string {
	name := base
	if at := strings.LastIndexByte(base, '-'); at > 0 && strings.Trim(base[at+1:], "0123456789") == "" {
		base = base[:at] // main-2 is followed by main-3
	}
	for n := 2; ; n++ {
		taken := slices.ContainsFunc(m.State.Branches, func(b checkpoint.BranchRef) bool { return b.Name == name })
		if !taken && name != other && name != "" && len(name) <= checkpoint.MaxName {
			return name
		}
		name = fmt.Sprintf("%.*s-%d", checkpoint.MaxName-8, base, n)
	}
}
