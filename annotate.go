package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Annotations are made on the newest state, and conflict with nothing but another writer's claim. They leave head,
// buffer and view alone. Whether there is anything to do is decided on the newest state.

// note stores an annotation, or a claim. plan returns nil where nothing would change: then a commit of a reason is
// stored for the sake of its key, if there is one.
func (s *Session) note(
	ctx context.Context, op string, k moveOptions, reason string, plan journal.Plan,
) (Receipt, error) {
	if err := k.check(); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	if err := s.writable(ctx); err != nil {
		return Receipt{}, s.fail(op, err)
	}
	before, behind := s.IO(), false
	c := journal.Step{Key: k.key, Digest: k.digest, Writer: k.writer, Based: true}
	res, err := s.j.Write(ctx, c, func(ctx context.Context, on *state.State) (step *journal.Step, err error) {
		var base *journal.Anchor
		if k.base != "" {
			if base, err = s.baseOf(ctx, on, k.base); err != nil {
				return nil, err
			}
		}
		step, err = plan(ctx, on)
		if step == nil && k.key != "" {
			step = &journal.Step{Note: true}
		}
		if behind = step == nil && base != nil && base.Commit != on.Summary.Commit && k.base != Newest; step != nil {
			step.Reason, step.Base = reason, base
		}
		return step, err
	})
	res.IDs, res.Behind = nil, res.Behind || behind
	if res.Repeated { // the service marks the id of a base that is to hold for repeats alone
		res.Behind = k.base != "" && k.base != Newest && !strings.HasSuffix(k.base, res.Commit.Parent)
	}
	return s.receipt(op, before, res, err)
}

// noteStep makes the step of an annotation that adds entries.
func (s *Session) noteStep(on *state.State, drafts []transcript.Draft) (*journal.Step, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	entries, _, err := s.build(drafts, journal.PlaceOf(on), places{}, s.j.Pending)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		e.Aside = true
		s.j.HoldBlobs(e.Blobs)
	}
	return &journal.Step{Note: true, Entries: entries}, nil
}

// Label names an entry for people; "" clears. It is an annotation: it is made on the newest state, whichever writer
// committed last, and moves nothing. An entry that is not committed is ErrUncommitted.
func (s *Session) Label(ctx context.Context, entry, label string, opts ...MoveOption) (Receipt, error) {
	drafts, err := s.screen(ctx, []transcript.Draft{labelDraft(entry, label)})
	if err != nil {
		return Receipt{}, s.fail("label", err)
	}
	k := optionsOf(opts, "label", entry, label)
	return s.note(ctx, "label", k, "label", func(ctx context.Context, on *state.State) (*journal.Step, error) {
		at, err := s.locateOn(ctx, on, entry)
		switch {
		case err != nil:
			return nil, err
		case at.ByOrdinal().Entry != nil:
			return nil, journal.ErrUncommitted
		case at.ID != entry: // a prefix of the id
			drafts[0] = labelDraft(at.ID, label)
		}
		return s.noteStep(on, drafts)
	})
}

// labelDraft is the entry that names another.
func labelDraft(target, label string) transcript.Draft {
	if err := rawjson.CheckText("label", label); err != nil {
		return transcript.Draft{Type: "label", Err: err}
	}
	body, err := json.Marshal(struct {
		Target string `json:"targetId"`
		Label  string `json:"label,omitempty"`
	}{target, label})
	return transcript.Draft{Type: "label", Body: body, Err: err}
}

// RenameBranch changes the name of a branch; "" removes it: its entries stay, and the tree shows them. The head stays,
// and is on the branch by its new name. It returns fs.ErrNotExist if no branch has the name, fs.ErrExist if another one
// has the new name; the branch that the session is on keeps one. A session has at most 1,024 names; at that limit the
// oldest that Rollback, or a turn that was kept, made by itself makes room for a new one.
func (s *Session) RenameBranch(ctx context.Context, name, to string, opts ...MoveOption) (Receipt, error) {
	err := errors.Join(checkName("branch name", name), checkName("branch name", to))
	if err == nil && name == "" {
		err = layout.BadInput("the name of the branch is empty")
	}
	if err != nil {
		return Receipt{}, s.fail("rename branch", err)
	}
	k := optionsOf(opts, "rename", name, to)
	plan := func(_ context.Context, on *state.State) (*journal.Step, error) {
		if to == "" && name == on.Summary.Branch {
			return nil, layout.BadInput("branch %q: the session is on it", name)
		}
		return &journal.Step{Note: true, Names: []checkpoint.Rename{{From: name, To: to}}}, nil
	}
	return s.note(ctx, "rename branch", k, state.ReasonNames, plan)
}

// InfoChange is what SetInfo changes; nil = stays.
type InfoChange struct {
	Title, Cwd *string            // at most 4 KiB each; Title "" = none
	Meta       map[string]*string // metadata by key, nil = removed; other keys stay. Limits: SessionOptions.Meta
}

// SetInfo changes title, working directory and metadata of the session in one commit of reason "info". It is an
// annotation: it applies to the newest state, and changes neither head nor branch. The values are the session's, not a
// branch's: navigation does not restore older ones. Of two changes of one key the later one counts. If nothing would
// change nothing is committed, and the receipt names the newest commit.
//
// Metadata over its limits is backend.ErrTooLarge, and nothing was applied.
func (s *Session) SetInfo(ctx context.Context, c InfoChange, opts ...MoveOption) (Receipt, error) {
	all, err := c.drafts(checkpoint.Summary{Title: "\x00", Cwd: "\x00"}) // for the hook
	if err != nil {
		return Receipt{}, s.fail("set info", err)
	}
	screened, err := s.screen(ctx, all)
	if err != nil {
		return Receipt{}, s.fail("set info", err)
	}
	parts := []string{"info"}
	for _, d := range all {
		parts = append(parts, d.Type, string(d.Body))
	}
	k := optionsOf(opts, parts...)
	plan := func(_ context.Context, on *state.State) (*journal.Step, error) {
		list, err := c.drafts(on.Summary)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && s.store.o.Hooks.BeforeAppend != nil {
			list = screened
		}
		return s.noteStep(on, list)
	}
	return s.note(ctx, "set info", k, state.ReasonInfo, plan)
}

// drafts are the entries by which a session changes what it is known by.
func (c InfoChange) drafts(now checkpoint.Summary) (say []transcript.Draft, err error) {
	for what, text := range map[string]*string{"title": c.Title, "working directory": c.Cwd} {
		if text == nil {
			continue
		}
		if len(*text) > checkpoint.MaxText {
			return nil, layout.TooLarge(what, checkpoint.MaxText, len(*text))
		}
		if err := rawjson.CheckText(what, *text); err != nil {
			return nil, err
		}
	}
	if c.Title != nil && *c.Title != now.Title {
		say = append(say, entry.Title(*c.Title))
	}
	if c.Cwd != nil && *c.Cwd == "" {
		return nil, layout.BadInput("the working directory is empty")
	}
	if c.Cwd != nil && *c.Cwd != now.Cwd {
		say = append(say, entry.Move(*c.Cwd))
	}
	if _, hold := c.Meta[checkpoint.MetaHold]; hold {
		return nil, errMetaHold()
	}
	change := checkpoint.MetaChange{}
	for key, value := range c.Meta {
		if have, ok := now.Meta[key]; ok != (value != nil) || ok && have != *value {
			change[key] = value
		}
	}
	if len(change) == 0 {
		return say, nil
	}
	if err := validMeta(change.Apply(now.Meta)); err != nil {
		return nil, err
	}
	if !change.Valid() {
		return nil, layout.TooLarge("metadata keys that change", 4*checkpoint.MaxMetaKeys, len(change))
	}
	return append(say, entry.Custom(transcript.MetaKind, change)), nil
}
