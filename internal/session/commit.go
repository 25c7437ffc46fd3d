package session

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
)

// Commit says what a commit saves beside the pending entries.
type Commit struct {
	Reason, Key string
	Edit        *Edit
	Turn        bool // the caller's own: may be deferred, and may be the reason for a snapshot

	claim bool // fences, and takes no entries
	move  *move
}

// Commit makes one step of what is pending and has it committed.
func (h *Handle) Commit(ctx context.Context, o Commit) (Receipt, error) {
	h.gate.RLock()
	r, err := h.commit(ctx, o)
	h.gate.RUnlock()
	return r, h.after(r, err)
}

// after runs the hook for an acknowledged commit.
func (h *Handle) after(r Receipt, err error) error {
	if hook := h.o.AfterCommit; hook != nil && err == nil && r.Commit != "" {
		hook(r)
	}
	return err
}

// commit is Commit with the gate held.
func (h *Handle) commit(ctx context.Context, o Commit) (Receipt, error) {
	before := h.IO()
	if err := h.j.Broken(); err != nil {
		return Receipt{}, err
	}
	if o.Turn && h.o.Defer && h.Defer(o.Edit) {
		return Receipt{Head: checkpoint.Head{Entry: h.Head(), Branch: h.State().Summary.Branch}}, nil
	}
	list, _ := h.Waiting()
	if o.claim {
		list = nil
	}
	if err := h.Store(ctx, list); err != nil {
		return Receipt{}, err
	}
	w := Wish{Reason: o.Reason, Key: o.Key, Edit: o.Edit, Claim: o.claim, Snapshot: h.snapshots.taken()}
	if o.move != nil {
		w.Move = o.move.into
	}
	h.order.Lock()
	unlock := sync.OnceFunc(h.order.Unlock)
	defer unlock()
	f, err := h.Take(list, w)
	if err != nil {
		return Receipt{}, err
	}
	f.Step.Queued = unlock
	res, err := h.j.Commit(ctx, f.Step)
	h.Settle(f, res, err)
	if err != nil {
		return Receipt{}, err
	}
	r := receipt(res)
	if o.Turn {
		r.Snapshot, r.Warnings = h.snapshots.due(ctx, h.j, f.From, f.Step.Reason, r.Warnings)
	}
	r.IO = h.IO().Sub(before)
	return r, nil
}

// receipt says what the journal did.
func receipt(res journal.Result) Receipt {
	return Receipt{
		Head: res.Commit.Head, Entries: res.Commit.Entries, Kept: res.Kept, Warnings: res.Warnings, Bytes: res.Bytes,
	}
}

// claimTries bounds how often Claim begins anew when others commit meanwhile.
const claimTries = 8

// Claim takes the session. What is pending is committed first, or kept as Rebase keeps it.
func (h *Handle) Claim(ctx context.Context) (Receipt, error) {
	if err := h.Writable(ctx); err != nil {
		return Receipt{}, err
	}
	h.gate.Lock()
	r, err := h.claim(ctx)
	h.gate.Unlock()
	return r, h.after(r, err)
}

func (h *Handle) claim(ctx context.Context) (Receipt, error) {
	before, branch := h.IO(), ""
	if list, _ := h.Waiting(); len(list) > 0 && h.j.Broken() == nil {
		r, err := h.commit(ctx, Commit{})
		if branch = r.Kept; err != nil && !lostRace(err) {
			return Receipt{}, err
		}
	}
	if h.j.Broken() != nil {
		r, err := h.rebase(ctx)
		if err != nil {
			return Receipt{}, err
		}
		branch = r.Kept
	}
	for try := 1; ; try++ {
		r, err := h.commit(ctx, Commit{Reason: "claim", claim: true})
		if err == nil {
			r.Kept, r.IO = branch, h.IO().Sub(before)
		}
		if try == claimTries || !lostRace(err) {
			return r, err
		}
		// The step that lost held nothing but the claim: it is made anew on the newest head.
		if err := h.j.Reload(ctx); err != nil {
			return Receipt{}, err
		}
	}
}

func lostRace(err error) bool {
	return errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrFenced)
}

// Rebase keeps the turn of a failed commit, and what is pending: see journal.Journal.Rebase.
func (h *Handle) Rebase(ctx context.Context) (Receipt, error) {
	if err := h.Writable(ctx); err != nil {
		return Receipt{}, err
	}
	h.gate.Lock()
	r, err := h.rebase(ctx)
	h.gate.Unlock()
	return r, h.after(r, err)
}

func (h *Handle) rebase(ctx context.Context) (Receipt, error) {
	before := h.IO()
	list, more := h.Waiting()
	if err := h.Store(ctx, list); err != nil {
		return Receipt{}, err
	}
	var f *Flight
	var extra *journal.Step
	if len(list) > 0 || more {
		var err error
		if f, err = h.Take(list, Wish{}); err != nil {
			return Receipt{}, err
		}
		extra = f.Step
	}
	results, err := h.j.Rebase(ctx, extra)
	h.SettleRebase(f, err)
	if err != nil {
		return Receipt{}, err
	}
	r := Receipt{Head: h.State().Head()}
	for _, res := range results {
		sum := receipt(res)
		r.Head, r.Bytes, r.Warnings = sum.Head, sum.Bytes, sum.Warnings
		r.Entries += sum.Entries
		if sum.Kept != "" {
			r.Kept = sum.Kept
		}
	}
	r.IO = h.IO().Sub(before)
	return r, nil
}

// Reload drops what is pending, the turn of a failed commit too, and stands at the newest head.
func (h *Handle) Reload(ctx context.Context) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	h.gate.Lock()
	defer h.gate.Unlock()
	err := h.j.Reload(ctx)
	if errors.Is(err, fs.ErrNotExist) && h.State().Summary.Commit == "" {
		err = nil // never committed, by nobody
	}
	if err == nil {
		h.Reset()
	}
	return err
}
