package sim

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// history is the whole session as a reader without faults finds it.
type history struct {
	j       *journal.Journal
	st      *state.State
	commits []checkpoint.Commit
	ids     []string            // of entries, in order
	lines   []state.Line        // by ordinal
	at      map[string][]uint64 // entry -> ordinals
	seqOf   map[string]uint64   // entry -> the commit that made it durable
	found   map[string]int      // commit -> index in commits
}

// recall reads the history; nil if there is none. deleted: it existed.
func (w *world) recall() (h *history, deleted bool) {
	ctx := context.Background()
	j, err := journal.Open(ctx, w.client(true).config())
	switch {
	case errors.Is(err, store.ErrDeleted):
		return nil, true
	case err != nil:
		if w.ledger.born || !errors.Is(err, fs.ErrNotExist) {
			w.violation("the session cannot be opened: %v", err)
		}
		return nil, false
	}
	h = &history{j: j, st: j.State(), at: map[string][]uint64{}, seqOf: map[string]uint64{}, found: map[string]int{}}
	for b, err := range j.Since(ctx, h.st, -1, nil) {
		if err != nil {
			w.violation("I3: history behind commit %d of %d: %v", len(h.commits)-1, h.st.Summary.Seq, err)
			return nil, false
		}
		w.chain(h, b)
	}
	if n := len(h.commits); n == 0 || h.commits[n-1].Head != h.st.Head() || uint64(len(h.lines)) != h.st.Next {
		w.violation("the history ends with %d commits and %d lines, the head is commit %d of %d lines", n, len(h.lines), h.st.Summary.Seq, h.st.Next)
		return nil, false
	}
	return h, false
}

// chain adds a commit, which must follow the last one.
func (w *world) chain(h *history, b store.Batch) {
	c, n := b.Commit, len(h.commits)
	switch {
	case int(c.Seq) != n:
		w.violation("commit %d where %d is due", c.Seq, n)
	case n > 0 && (c.Parent != h.commits[n-1].Commit || c.Epoch < h.commits[n-1].Epoch):
		w.violation("commit %d does not follow the one before it, or its epoch %d falls (I8)", c.Seq, c.Epoch)
	}
	h.found[c.Commit] = n
	h.commits = append(h.commits, c)
	for _, line := range b.Lines {
		if line.Ord != uint64(len(h.lines)) || line.Parent >= int64(line.Ord) {
			w.violation("I6: line %d where %d is due", line.Ord, len(h.lines))
		}
		h.lines = append(h.lines, line)
		if line.Commit {
			continue
		}
		id := idOf(line.Raw)
		h.ids = append(h.ids, id)
		h.at[id] = append(h.at[id], line.Ord)
		h.seqOf[id] = c.Seq
	}
}

// prefix checks that the entries that a reader saw are a prefix of the history: T8.
func (w *world) prefix(who string, ids []string, h *history) {
	if len(ids) > len(h.ids) || !slices.Equal(ids, h.ids[:len(ids)]) {
		w.violation("%s read %d entries that are not the first of the history's %d: %v / %v", who, len(ids), len(h.ids), ids, h.ids)
	}
}

// judge compares all answers with the history.
func (w *world) judge(h *history) {
	l := w.ledger
	for _, r := range l.reads {
		w.prefix(r.who, r.ids, h)
	}
	for _, t := range l.turns {
		w.judgeTurn(t, h)
	}
	w.judgeOverwrites(h)
	w.judgeWords(h)
	w.judgeOrder(h)
	w.judgeKeys(h)
	w.judgePath(h)
	ctx := context.Background()
	for sum, data := range l.blobs {
		if got, err := h.j.GetBlob(ctx, h.st, sum); err != nil || string(got) != string(data) {
			w.violation("I3: blob %s: %v", sum, err)
		}
	}
	for _, s := range l.shots {
		st, err := h.j.ReadSnapshot(ctx, s.name)
		if err != nil || st.Summary.Commit != s.commit || string(st.DocJSON) != s.doc || st.HeadOrd != s.headOrd {
			w.violation("I9: snapshot %s of commit %s: %v", s.name, s.commit, err)
		}
	}
}

// judgeTurn: an acknowledged turn is in the history once, with its bytes; a refused one is not; one in doubt is there
// at most once.
func (w *world) judgeTurn(t *turn, h *history) {
	for i, e := range t.entries {
		ords := h.at[e.ID]
		want := t.fate == acked
		switch {
		case len(ords) > 1:
			w.violation("turn %d: entry %s stands %d times in the history", t.n, e.ID, len(ords))
		case want && len(ords) == 0:
			w.violation("I1: turn %d was acknowledged by commit %d %s, and entry %s is not in the history", t.n, t.seq, t.commit, e.ID)
		case t.fate == repeated && len(ords) == 1 && h.seqOf[e.ID] == t.seq: // the key was that of its own try
		case (t.fate == refused || t.fate == repeated) && len(ords) > 0:
			w.violation("I2: turn %d was not applied, it was said (%d), and entry %s is in the history", t.n, t.fate, e.ID)
		case t.fate == sent || t.fate == limbo || t.fate == doubtful:
			w.violation("turn %d: nobody was told what became of it", t.n)
		case len(ords) == 1:
			line := h.lines[ords[0]]
			if string(line.Raw) != string(e.Raw) || i > 0 && ords[0] != h.at[t.entries[0].ID][0]+uint64(i) {
				w.violation("turn %d: entry %s has other bytes, or another place, than were committed", t.n, e.ID)
			}
			if ord, ok := e.Ordinal(); want && ok && ord != line.Ord {
				w.violation("turn %d: entry %s has ordinal %d, and was said to have %d", t.n, e.ID, line.Ord, ord)
			}
		}
	}
	if t.commit == "" {
		return
	}
	at, ok := h.found[t.commit]
	if !ok || uint64(at) != t.seq {
		w.violation("I1: turn %d was acknowledged by commit %s of seq %d, which is not in the history there", t.n, t.commit, t.seq)
		return
	}
	if t.fate != acked || t.state == "" || w.plan.ops > 20 {
		return
	}
	m, err := h.j.At(context.Background(), h.st, t.seq)
	if err != nil || string(m.Doc.State) != t.state {
		w.violation("I5/I9: turn %d: the state of commit %d is %s, not %s: %v", t.n, t.seq, m.Doc.State, t.state, err)
	}
	for _, name := range []string{t.step.Branch, t.step.Kept} {
		if _, ok := h.st.Branch(name); name != "" && !ok && !t.step.KeepBoth && h.commits[at].Kept == t.step.Kept {
			w.violation("turn %d: there is no branch %s", t.n, name)
		}
	}
}

// judgeOverwrites: a turn in force replaced a head and a document that its writer knew; otherwise it should have
// conflicted.
func (w *world) judgeOverwrites(h *history) {
	for _, t := range w.ledger.turns {
		at, ok := h.found[t.commit]
		if seen, known := h.found[t.base]; ok && known && t.fate == acked && !h.keeps(at) {
			w.judgeOverwrite(t, h, h.session(seen), h.session(at-1))
		}
	}
}

func (w *world) judgeOverwrite(t *turn, h *history, seen, before int) {
	if seen == before {
		return
	}
	a, b := &h.commits[seen], &h.commits[before]
	same := a.Entry == b.Entry && a.Branch == b.Branch
	if same {
		had, err := h.j.At(context.Background(), h.st, a.Seq)
		found, ferr := h.j.At(context.Background(), h.st, b.Seq)
		same = err == nil && ferr == nil && string(had.DocRaw) == string(found.DocRaw)
	}
	if !same {
		w.violation("turn %d was made on commit %d, and overwrites commit %d, which its writer never saw", t.n, a.Seq, b.Seq)
	}
}

// keeps reports whether a commit is a kept losing turn: it moves nothing.
func (h *history) keeps(at int) bool {
	c := &h.commits[at]
	return c.Kept != "" && c.Kept == c.Branch
}

// session returns the newest commit, up to an index in the history, that moved the session.
func (h *history) session(at int) int {
	for at > 0 && h.keeps(at) {
		at--
	}
	return at
}

// judgeOrder: a turn that was acknowledged before another began precedes it.
func (w *world) judgeOrder(h *history) {
	for _, a := range w.ledger.turns {
		for _, b := range w.ledger.turns {
			if a.fate == acked && b.fate == acked && a.commit != "" && b.commit != "" && a.ended < b.began && a.seq >= b.seq {
				w.violation("turn %d was acknowledged before turn %d began, and comes behind it: commits %d and %d", a.n, b.n, a.seq, b.seq)
			}
		}
	}
}

// judgeKeys: a turn that was retried under its key was applied once.
func (w *world) judgeKeys(h *history) {
	seen := map[string]uint64{}
	for _, c := range h.commits {
		if at, ok := seen[c.Key]; ok && c.Key != "" && len(h.commits) <= 60 {
			w.violation("the turn with key %s was applied by commits %d and %d", c.Key, at, c.Seq)
		}
		seen[c.Key] = c.Seq
	}
}

// judgePath: the stored working window is the path from the root to the head.
func (w *world) judgePath(h *history) {
	if h.st.Window == nil || h.st.Window.Omitted() > 0 {
		return
	}
	var path []uint64
	for at := h.st.HeadOrd; at >= 0; at = h.lines[at].Parent {
		path = append(path, uint64(at))
	}
	slices.Reverse(path)
	var have []uint64
	for _, e := range h.st.Window.Entries() {
		have = append(have, e.Ordinal)
		if string(e.Raw) != string(h.lines[e.Ordinal].Raw) {
			w.violation("I9: the window has other bytes of entry %d", e.Ordinal)
		}
	}
	if !slices.Equal(path, have) {
		w.violation("I9: the window holds entries %v, the way to the head is %v", have, path)
	}
}

// finish runs after all writers have ended: late messages arrive, garbage is collected, and the answers are compared
// with the stored history.
func (w *world) finish() {
	var before *history
	last, _ := w.bucket.last()
	deleted := last.sum.Tombstone
	if w.plan.settles || w.awaited() {
		before, deleted = w.recall()
	}
	heads := len(w.bucket.heads)
	if before != nil && w.plan.settles {
		if _, err := before.j.Commit(context.Background(), &journal.Step{Reason: "claim", Claim: true}); err != nil {
			w.violation("a claim without faults: %v", err)
		}
		heads = len(w.bucket.heads)
	}
	w.late.Wait()
	for _, deliver := range w.leftover() {
		deliver()
	}
	if deleted { // a late deletion may replace a tombstone, which changes nothing
		for heads < len(w.bucket.heads) && w.bucket.heads[heads].sum.Tombstone {
			heads++
		}
	}
	if (before != nil && w.plan.settles || deleted) && len(w.bucket.heads) != heads {
		w.violation("a message was applied although a commit had settled its outcome")
	}
	if len(w.bad) > 0 {
		return
	}
	h, gone := w.recall()
	switch {
	case gone:
		w.finishDeleted()
	case h != nil:
		if before != nil {
			w.prefix("the reader before the last messages", before.ids, h)
		}
		if w.ledger.buried != 0 {
			w.violation("the session was deleted, and is there")
		}
		w.judge(h)
		if w.plan.sweeps && len(w.bucket.list(layout.SessionPrefix(session), "", 1)) > 0 {
			w.sweep(h)
		}
	}
}

// sweep collects garbage, and checks that exactly the needed objects remain (I3).
func (w *world) sweep(h *history) {
	ctx := context.Background()
	c := w.client(true)
	cfg := c.config()
	cfg.Limits = journal.Limits{SealBytes: 1 << 40, SealEntries: 1 << 30} // nothing is due to be sealed
	j, err := journal.Open(ctx, cfg)
	if err == nil {
		_, err = j.Commit(ctx, &journal.Step{Reason: "claim", Claim: true})
	}
	if err != nil {
		w.violation("a claim without faults: %v", err)
		return
	}
	if _, err := gc.Run(ctx, c.config(), false); err != nil {
		w.violation("collecting without faults: %v", err)
		return
	}
	after, _ := w.recall()
	if after == nil {
		return
	}
	w.prefix("who looked before garbage was collected", h.ids, after)
	reach := map[string]bool{}
	var down func(level int, ref codecRef) bool
	down = func(level int, ref codecRef) bool {
		seg := layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}
		if level == 0 {
			reach[seg.SealedKey(session)] = true
			return true
		}
		key := layout.IndexKey(session, level, seg)
		reach[key] = true
		refs, err := check.FoldIndex(ctx, c, key, ref)
		if err != nil {
			w.violation("I3: %v", err)
		}
		for _, r := range refs {
			down(level-1, r)
		}
		return true
	}
	after.st.Segments.Refs(down)
	for _, info := range w.bucket.list(layout.SessionPrefix(session), "", 1<<30) {
		if !reach[info.Key] && !wanted(info.Key, after.st.Summary.Epoch) {
			w.violation("garbage stays: %s", info.Key)
		}
		delete(reach, info.Key)
	}
	for key := range reach {
		w.violation("I3: %s is missing", key)
	}
	if w.Seed%8 != 0 {
		return
	}
	r, err := check.Verify(ctx, c.config(), true)
	if err != nil {
		w.violation("verify: %v", err)
	}
	for _, p := range r.Problems {
		if p.Kind.Damage() {
			w.violation("I3: %v", p)
		}
	}
}

// wanted reports whether the last claim may have made an object: it may have folded references without sealing.
func wanted(key string, epoch uint64) bool {
	_, seg, ok := layout.ParseIndexKey(key)
	return ok && seg.Epoch == epoch || !strings.Contains(key, "/"+layout.Index) && !strings.Contains(key, "/"+layout.Transcript)
}

// finishDeleted: only the tombstone of a deleted session remains, and it has the acknowledged commits.
func (w *world) finishDeleted() {
	ctx := context.Background()
	c := w.client(true)
	if w.ledger.buries == 0 {
		w.violation("the session is deleted, and nobody asked for it")
	}
	if err := journal.Delete(ctx, c.config()); err != nil {
		w.violation("deleting to the end: %v", err)
	}
	if left := w.bucket.list(layout.SessionPrefix(session), "", 10); len(left) > 0 {
		w.violation("left of a deleted session: %v", left)
	}
	o := w.bucket.get(layout.CheckpointKey(session))
	tomb, err := checkpoint.DecodeObject(o.body)
	if err != nil {
		w.violation("tombstone: %v", err)
		return
	}
	known := map[string]bool{}
	for _, c := range tomb.Lineage {
		known[c.Commit] = true
	}
	for _, t := range w.ledger.turns {
		if t.fate == acked && t.commit != "" && len(tomb.Lineage) > 0 && len(tomb.Lineage) < 64 && tomb.Lineage[0].Seq == 0 && !known[t.commit] {
			w.violation("I1: turn %d was acknowledged by commit %s, which the tombstone does not know", t.n, t.commit)
		}
	}
	if _, err := journal.Create(c.config(), state.Genesis{Header: header}).Commit(ctx, &journal.Step{Reason: "turn"}); err == nil {
		w.violation("a deleted id was used again")
	} else if backend.OutcomeOf(err) != backend.NotApplied {
		w.violation("creating what is deleted: %v", err)
	}
}
