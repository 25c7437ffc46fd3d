package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Commit makes what was appended before it was called durable, together with the turn's state: one PUT,
// or one append and one sync, and one PUT more for each new large image. Commits that meet share it. The
// state is marshalled first of all. On an error nothing of it was applied, unless the error is
// ErrCommitUnknown; the entries are pending, State is as it was.
func (s *Session) Commit(ctx context.Context, t Turn) (Receipt, error) {
	o, err := t.options()
	if err == nil {
		err = s.writable(ctx)
	}
	if err != nil {
		return Receipt{}, s.fail("commit", err)
	}
	o.turn = true
	return s.commit(ctx, "commit", o)
}

// options checks a turn and marshals what it holds.
func (t Turn) options() (o commitOptions, err error) {
	o = commitOptions{reason: t.Reason, key: t.Key, edit: &edit{}}
	if o.edit.state, err = marshal("state", t.State); err != nil {
		return o, err
	}
	if o.edit.manager, err = marshal("manager", t.Manager); err != nil {
		return o, err
	}
	if len(t.Key) > checkpoint.MaxName {
		return o, limitError("idempotency key", checkpoint.MaxName, len(t.Key))
	}
	return o, checkReason(t.Reason)
}

// marshal gives v as JSON; nil for nil and for no bytes.
func marshal(what string, v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); v == nil || ok && len(raw) == 0 {
		return nil, nil
	}
	p, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", what, err)
	}
	if len(p) > checkpoint.MaxState {
		return nil, limitError(what, checkpoint.MaxState, len(p))
	}
	return p, nil
}

// ownReasons have a meaning in the log that a turn must not claim. "create" is one as well, except for
// the first commit of a session.
var ownReasons = []string{
	"branch", "claim", "conflict", "create", "delete", "fork", "import", "label", "repair", "roll", "rollback",
}

func checkReason(reason string) error {
	bad := strings.ContainsFunc(reason, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
	if bad || len(reason) > 32 {
		return fmt.Errorf("reason %.40q: want 1 to 32 of a-z, 0-9, '.' and '-'", reason)
	}
	if reason != "create" && slices.Contains(ownReasons, reason) {
		return fmt.Errorf("reason %q is coppice's own", reason)
	}
	return nil
}

// commitOptions say what a commit does beside taking the pending entries.
type commitOptions struct {
	reason, key string
	edit        *edit
	turn        bool // by Commit: may be deferred, and may be the reason for a snapshot
	claim       bool
	alone       bool // takes no pending entries
	move        *move
}

// commit makes one step of what is pending and has it committed. The gate is not held.
func (s *Session) commit(ctx context.Context, op string, o commitOptions) (Receipt, error) {
	s.gate.RLock()
	r, err := s.commitIn(ctx, op, o)
	s.gate.RUnlock()
	return r, s.after(r, err)
}

// after runs the hook for an acknowledged commit.
func (s *Session) after(r Receipt, err error) error {
	if hook := s.store.o.Hooks.AfterCommit; hook != nil && err == nil && r.Commit != "" {
		hook(s, r)
	}
	return err
}

// commitIn is commit with the gate held.
func (s *Session) commitIn(ctx context.Context, op string, o commitOptions) (Receipt, error) {
	before := s.b.IO()
	if err := s.j.Broken(); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	var list []*pending
	var items []transcript.Item
	deferred := false
	s.look(func(w *work) {
		if !o.alone {
			list = w.free()
		}
		if w.unsaved {
			items = w.items
		}
		if deferred = o.turn && s.o.DeferUntilAssistant && w.deferrable(); deferred {
			w.hold(list, o.edit)
		}
	})
	if deferred {
		h := s.Head()
		return Receipt{Head: checkpoint.Head{Entry: h.Entry, Branch: h.Branch}}, nil
	}
	if err := s.images.save(ctx, s, list, items); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	s.order.Lock()
	unlock := sync.OnceFunc(s.order.Unlock)
	defer unlock()
	t, err := s.step(list, o)
	if err != nil {
		return Receipt{}, s.fail(op, err)
	}
	t.step.Queued = unlock
	res, err := s.j.Commit(ctx, t.step)
	if err = s.settle(t, res, err); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	r := receipt(res, t)
	if o.turn {
		r.Snapshot, r.Warnings = s.snapshots.due(ctx, s, t.from, t.step.Reason, r)
	}
	r.IO = s.b.IO().Sub(before)
	return r, nil
}

// flight is a step on its way.
type flight struct {
	step    *journal.Step
	list    []*pending
	from    *journal.State // acknowledged when the step was made
	itemsAt int
	held    *edit
	move    bool
}

// step makes the step of the entries of list that are still free.
func (s *Session) step(list []*pending, o commitOptions) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	w := s.sync()
	if o.reason == "create" && w.st.Summary.Commit != "" {
		return nil, fmt.Errorf("reason %q: the session has commits", o.reason)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(p *pending) bool { return p.step || p.ord.Load() >= 0 })
	t := &flight{list: list, from: w.st, itemsAt: w.itemsAt, held: w.held, move: o.move != nil}
	e := w.held.then(o.edit)
	if e == nil {
		e = &edit{}
	}
	var path []transcript.Entry // what is new on the way to the head
	compaction := false
	t.step = &journal.Step{
		Reason: o.reason, Key: o.key, Claim: o.claim, KeepBoth: s.o.KeepBoth && !o.claim, Snapshot: s.snapshots.taken(),
	}
	for i, p := range list {
		p.step = true
		t.step.Entries = append(t.step.Entries, p.e)
		path = append(path, entryOf(p.line, uint64(i)))
		compaction = compaction || p.line.Type == "compaction"
		for _, b := range p.blobs {
			if len(b.Data) <= checkpoint.MaxBlob {
				if t.step.Blobs == nil {
					t.step.Blobs = map[string][]byte{}
				}
				t.step.Blobs[b.Sum] = b.Data
			}
		}
	}
	if t.step.Reason == "" {
		if t.step.Reason = "turn"; compaction {
			t.step.Reason = "compaction"
		}
	}
	if o.move != nil {
		o.move.into(t.step)
		w.flying++
		return t, nil
	}
	if w.items != nil || w.unsaved {
		same := *e
		e = &same
		e.context, e.setContext = w.encodeItems(), true
	}
	t.step.Head = w.journalHead(list)
	if w.window() == nil {
		t.step.Window = w.base
	}
	quiet := e.state == nil && e.manager == nil && !e.setContext && w.flying == 0
	if p := w.profile; !quiet || settings(p, w.st.Doc.Settings, path) != w.st.Doc.Settings {
		t.step.Edit = func(d checkpoint.Document) checkpoint.Document {
			d = e.apply(d)
			d.Settings = settings(p, d.Settings, path)
			return d
		}
	}
	w.flying++
	return t, nil
}

// encodeItems is the explicit context as the document keeps it: entries bring their message along where
// the window does not hold them.
func (w *work) encodeItems() []transcript.Item {
	in := map[string]bool{}
	if w.win != nil {
		for _, e := range w.win.Entries() {
			in[e.ID] = true
		}
	}
	var list []transcript.Item
	for _, it := range w.items {
		if it.Entry != "" && (in[it.Entry] || len(it.Message) == 0) {
			it.Message = nil
		}
		list = append(list, it)
	}
	return list
}

// settle brings the working view up to date after the journal answered.
func (s *Session) settle(t *flight, res journal.Result, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sync()
	w.flying--
	if err != nil {
		if !kept(err) {
			for _, p := range t.list {
				p.step = false
			}
		}
		w.version++
		return err
	}
	if w.held == t.held {
		w.held = nil
	}
	if w.itemsAt == t.itemsAt {
		w.unsaved = false
	}
	if res.Repeated {
		w.drop(t.list)
	}
	if res.Kept != "" || t.move {
		w.settle() // the head is where the commit left it, whatever was appended meanwhile
	}
	return nil
}

// kept reports whether the journal kept the step of a failed commit for Rebase.
func kept(err error) bool {
	var f *journal.Failure
	return errors.As(err, &f) && !errors.Is(err, journal.ErrReadOnly)
}

// receipt says what the journal did.
func receipt(res journal.Result, t *flight) Receipt {
	return Receipt{
		Head: res.Commit.Head, Entries: res.Commit.Entries, Kept: res.Kept, Warnings: res.Warnings, Bytes: res.Bytes,
	}
}

// Claim takes the session: every older writer is ErrFenced from here on. What is pending is committed
// first; if another committed meanwhile, or the handle has failed, it is kept as Rebase keeps it
// (Receipt.Kept), and the newest head is taken.
func (s *Session) Claim(ctx context.Context) (Receipt, error) {
	if err := s.writable(ctx); err != nil {
		return Receipt{}, s.fail("claim", err)
	}
	s.gate.Lock()
	r, err := s.claim(ctx)
	s.gate.Unlock()
	return r, s.after(r, err)
}

func (s *Session) claim(ctx context.Context) (Receipt, error) {
	before, branch, open := s.b.IO(), "", 0
	s.look(func(w *work) { open = len(w.free()) })
	if open > 0 && s.j.Broken() == nil {
		r, err := s.commitIn(ctx, "claim", commitOptions{})
		if branch = r.Kept; err != nil && !lostRace(err) {
			return Receipt{}, err
		}
	}
	if s.j.Broken() != nil {
		r, err := s.rebase(ctx)
		if err != nil {
			return Receipt{}, s.fail("claim", err)
		}
		branch = r.Kept
	}
	for try := 1; ; try++ {
		r, err := s.commitIn(ctx, "claim", commitOptions{reason: "claim", claim: true, alone: true})
		if err == nil {
			r.Kept, r.IO = branch, s.b.IO().Sub(before)
		}
		if try == claimTries || !lostRace(err) {
			return r, err
		}
		// The step that lost held nothing but the claim: it is made anew on the newest head.
		if err := s.reload(ctx, true); err != nil {
			return Receipt{}, s.fail("claim", err)
		}
	}
}

func lostRace(err error) bool { return errors.Is(err, ErrConflict) || errors.Is(err, ErrFenced) }

// claimTries bounds how often Claim begins anew when others commit meanwhile.
const claimTries = 8

// Rebase keeps the turn of a failed commit, and what is pending. It looks first: what was in doubt and is
// there is not repeated. If the head has not moved it is a plain commit. If it has, the turn becomes a
// branch of its own with its own document, Receipt.Kept, and the head stays the winner's; Switch goes
// there. Where nothing has failed and nothing is pending it stands at the newest head.
func (s *Session) Rebase(ctx context.Context) (Receipt, error) {
	if err := s.writable(ctx); err != nil {
		return Receipt{}, s.fail("rebase", err)
	}
	s.gate.Lock()
	r, err := s.rebase(ctx)
	s.gate.Unlock()
	return r, s.after(r, s.fail("rebase", err))
}

func (s *Session) rebase(ctx context.Context) (Receipt, error) {
	before := s.b.IO()
	var list []*pending
	var items []transcript.Item
	extra := false
	s.look(func(w *work) {
		list, items = w.free(), w.items
		extra = len(list) > 0 || w.held != nil || w.unsaved
	})
	if err := s.images.save(ctx, s, list, items); err != nil {
		return Receipt{}, err
	}
	t, err := &flight{}, error(nil)
	if extra {
		if t, err = s.step(list, commitOptions{}); err != nil {
			return Receipt{}, err
		}
	}
	results, err := s.j.Rebase(ctx, t.step)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sync()
	if extra {
		w.flying--
	}
	if err != nil {
		if extra && !kept(err) {
			for _, p := range t.list {
				p.step = false
			}
		}
		return Receipt{}, err
	}
	w.held, w.unsaved = nil, false
	w.drop(slices.DeleteFunc(slices.Clone(w.open), func(p *pending) bool { return !p.step })) // known by their key
	w.settle()
	r := Receipt{Head: w.st.Head()}
	for _, res := range results {
		sum := receipt(res, nil)
		r.Head, r.Bytes, r.Warnings = sum.Head, sum.Bytes, sum.Warnings
		r.Entries += sum.Entries
		if sum.Kept != "" {
			r.Kept = sum.Kept
		}
	}
	r.IO = s.b.IO().Sub(before)
	return r, nil
}

// Reload drops what is pending, the turn of a failed commit too, and stands at the newest head.
func (s *Session) Reload(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return s.fail("reload", err)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.fail("reload", s.reload(ctx, false))
}

// reload stands at the newest head. keep: entries that are in no step stay pending where they hang.
func (s *Session) reload(ctx context.Context, keep bool) error {
	err := s.j.Reload(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sync()
	if errors.Is(err, fs.ErrNotExist) && w.st.Summary.Commit == "" {
		err = nil // never committed, by nobody
	}
	if err == nil && (!keep || len(w.open) == 0) {
		w.reset(w.st)
	}
	return err
}

// snapshots takes snapshots by policy, after a commit is acknowledged.
type snapshots struct {
	mu     sync.Mutex
	policy snapshot.Policy
	last   uint64 // seq of the newest one, as far as is known
	name   string // of one that no commit has named yet
}

// start assumes that the handles before this one kept to the same policy.
func (sn *snapshots) start(seq uint64, p snapshot.Policy) {
	every := uint64(50)
	if p.Every > 0 {
		every = uint64(p.Every)
	}
	sn.policy, sn.last = p, seq-seq%every
}

// taken gives the snapshot that the next commit is to name.
func (sn *snapshots) taken() string {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	name := sn.name
	sn.name = ""
	return name
}

// due takes a snapshot of the state before a commit, if the policy wants one. A failure is a warning.
func (sn *snapshots) due(ctx context.Context, s *Session, before *journal.State, reason string, r Receipt) (string, []string) {
	seq := before.Summary.Seq
	sn.mu.Lock()
	due := before.Summary.Commit != "" && seq > sn.last && sn.policy.When(int(seq-sn.last), reason)
	if due {
		sn.last = seq
	}
	sn.mu.Unlock()
	if !due {
		return "", r.Warnings
	}
	info, err := s.j.Snapshot(ctx, before, "")
	if err != nil {
		return "", append(r.Warnings, fmt.Sprintf("no snapshot of seq %d: %v", seq, err))
	}
	sn.mu.Lock()
	defer sn.mu.Unlock()
	sn.name = info.ID
	return info.ID, r.Warnings
}
