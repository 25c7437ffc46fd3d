package coppice

import (
	"context"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/transcript"
)

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
	say, err := c.drafts(checkpoint.Summary{Title: "\x00", Cwd: "\x00"}) // all of it: for the hook
	if err != nil {
		return Receipt{}, s.fail("set info", err)
	}
	r, err := s.h.Annotate(ctx, optionsOf(opts), say, c.drafts)
	return s.receipt("set info", r, err)
}

// drafts are the entries by which a session changes what it is known by.
func (c InfoChange) drafts(now checkpoint.Summary) (say []transcript.Draft, err error) {
	for what, text := range map[string]*string{"title": c.Title, "working directory": c.Cwd} {
		if text == nil {
			continue
		}
		if len(*text) > checkpoint.MaxText {
			return nil, session.LimitError(what, checkpoint.MaxText, len(*text))
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
		return nil, session.LimitError("metadata keys that change", 4*checkpoint.MaxMetaKeys, len(change))
	}
	return append(say, entry.Custom(transcript.MetaKind, change)), nil
}
