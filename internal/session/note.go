package session

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Annotations are made on the newest state, and conflict with nothing but another writer's claim. They leave head,
// buffer and view alone. Whether there is anything to do is decided on the newest state.

// note stores an annotation, or a claim. plan returns nil where nothing would change: then a commit of a reason is
// stored for the sake of its key, if there is one.
func (h *Handle) note(ctx context.Context, k MoveOptions, reason string, plan journal.Plan) (journal.Result, error) {
	if err := k.check(); err != nil {
		return journal.Result{}, err
	}
	if err := h.Writable(ctx); err != nil {
		return journal.Result{}, err
	}
	before := h.IO()
	c := journal.Call{Key: k.Key, Digest: k.digest, Based: true}
	res, err := h.j.Write(ctx, c, func(ctx context.Context, on *state.State) (*journal.Step, error) {
		step, err := plan(ctx, on)
		if step == nil && k.Key != "" {
			step = &journal.Step{Note: true}
		}
		if step == nil || err != nil {
			return nil, err
		}
		step.Reason = reason
		step.Key, step.Digest, step.Writer = k.Key, k.digest, k.Writer
		if k.Base != "" {
			step.Base, err = h.baseOf(ctx, on, k.Base)
		}
		return step, err
	})
	if err != nil {
		return journal.Result{}, err
	}
	res.IO, res.IDs = h.IO().Sub(before), nil
	if res.Repeated { // the service marks the id of a base that is to hold for repeats alone
		res.Behind = k.Base != "" && k.Base != Newest && !strings.HasSuffix(k.Base, res.Commit.Parent)
	}
	if res.Commit.Reason != "" {
		h.after(res)
	}
	return res, nil
}

// noteStep makes the step of an annotation that adds entries.
func (h *Handle) noteStep(on *state.State, drafts []transcript.Draft) (*journal.Step, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	entries, _, err := h.build(drafts, journal.PlaceOf(on), places{}, h.j.Pending)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		e.Aside = true
		h.j.HoldBlobs(e.Blobs)
	}
	return &journal.Step{Note: true, Entries: entries}, nil
}

// Label names an entry for people; "" clears.
func (h *Handle) Label(ctx context.Context, k MoveOptions, entry, label string) (journal.Result, error) {
	k = k.of("label", entry, label)
	drafts, err := h.Screen(ctx, []transcript.Draft{LabelDraft(entry, label)})
	if err != nil {
		return journal.Result{}, err
	}
	return h.note(ctx, k, "label", func(ctx context.Context, on *state.State) (*journal.Step, error) {
		at, err := h.locateOn(ctx, on, entry)
		switch {
		case err != nil:
			return nil, err
		case at.Settled().Entry != nil:
			return nil, journal.ErrUncommitted
		case at.ID != entry: // a prefix of the id
			drafts[0] = LabelDraft(at.ID, label)
		}
		return h.noteStep(on, drafts)
	})
}

// RenameBranch changes the name of a branch, or removes it.
func (h *Handle) RenameBranch(ctx context.Context, k MoveOptions, from, to string) (journal.Result, error) {
	if err := errors.Join(CheckName("branch name", from), CheckName("branch name", to)); err != nil {
		return journal.Result{}, err
	}
	if from == "" {
		return journal.Result{}, layout.BadInput("the name of the branch is empty")
	}
	k = k.of("rename", from, to)
	return h.note(ctx, k, state.ReasonNames, func(_ context.Context, on *state.State) (*journal.Step, error) {
		if to == "" && from == on.Summary.Branch {
			return nil, layout.BadInput("branch %q: the session is on it", from)
		}
		return &journal.Step{Note: true, Names: []checkpoint.Rename{{From: from, To: to}}}, nil
	})
}

// Annotate commits entries about the session. say returns those that change something in the newest state; drafts are
// what the hook is shown.
func (h *Handle) Annotate(
	ctx context.Context, k MoveOptions, drafts []transcript.Draft,
	say func(now checkpoint.Summary) ([]transcript.Draft, error),
) (journal.Result, error) {
	screened, err := h.Screen(ctx, drafts)
	if err != nil {
		return journal.Result{}, err
	}
	parts := []string{"info"}
	for _, d := range drafts {
		parts = append(parts, d.Type, string(d.Body))
	}
	k = k.of(parts...)
	return h.note(ctx, k, state.ReasonInfo, func(_ context.Context, on *state.State) (*journal.Step, error) {
		list, err := say(on.Summary)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && h.o.BeforeAppend != nil {
			list = screened
		}
		return h.noteStep(on, list)
	})
}

// Amend replaces what an entry says, or hides it where d is nil. A draft without type and body takes every amendment
// back. Where the entry says that already, nothing is committed.
func (h *Handle) Amend(
	ctx context.Context, k MoveOptions, entry string, d *transcript.Draft,
) (journal.Result, error) {
	var body []byte
	if d != nil {
		on := h.j.Tip()
		was, _, _, err := h.versions(ctx, on, entry)
		if isMissing(err) {
			if on, err = h.j.Latest(ctx); err == nil {
				was, _, _, err = h.versions(ctx, on, entry)
			}
		}
		if err != nil {
			return journal.Result{}, err
		}
		own, err := h.screenAmendment(ctx, was, *d)
		if err != nil {
			return journal.Result{}, err
		}
		body = own.Body
	}
	k = k.of("amend", entry, string(body))
	var draft transcript.Draft
	res, err := h.note(ctx, k, "amend", func(ctx context.Context, on *state.State) (*journal.Step, error) {
		was, is, first, err := h.versions(ctx, on, entry)
		if err != nil {
			return nil, err
		}
		if draft, err = was.Amend(body, first); err != nil {
			return nil, err
		}
		if d == nil && is.Hidden || d != nil && !is.Hidden && says(is, draft) {
			return nil, nil
		}
		step, err := h.noteStep(on, []transcript.Draft{draft})
		if err != nil {
			return nil, err
		}
		a, ok := step.Entries[0].Head.Entry(0).Amendment()
		if !ok {
			return step, nil
		}
		step.Edit = amendDocument(on, a)
		if on.Window == nil { // else the journal knows what a listing shows
			step.Outline, err = h.outlineAfter(ctx, on, a)
		}
		return step, err
	})
	if err == nil {
		h.refreshItems(draft)
	}
	return res, err
}

// outlineAfter returns what a listing shows of a state after an amendment.
func (h *Handle) outlineAfter(
	ctx context.Context, on *state.State, a transcript.Amendment,
) (*checkpoint.Outline, error) {
	m, err := h.momentOn(ctx, on)
	if err != nil {
		return nil, err
	}
	profile, bound := h.Rules()
	win, err := h.WindowAt(ctx, m, journal.PlaceOf(on), profile, bound)
	if err != nil {
		return nil, err
	}
	win = win.Clone()
	win.Amend(a)
	outline := state.Outline(win.Entries())
	return &outline, nil
}
