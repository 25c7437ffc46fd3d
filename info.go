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

// SetInfo changes title, working directory and metadata of the session in one commit of reason "info"; the head stays.
// Every handle and every listing has them from then on. They are the session's, not a branch's: navigation does not
// bring older ones back. Of two writers the later one counts, for each key by itself. What is pending is committed
// along, as by Label. If nothing would change nothing is committed, and the receipt names the newest commit.
//
// Metadata over its limits, as this handle knows it, is backend.ErrTooLarge, and nothing was applied. Errors of the
// commit are those of Label.
func (s *Session) SetInfo(ctx context.Context, c InfoChange) (Receipt, error) {
	if err := s.h.Writable(ctx); err != nil {
		return Receipt{}, s.fail("set info", err)
	}
	now := s.Info()
	say, err := c.drafts(now)
	if err == nil && c.leaves(now) { // the newest state decides whether it is
		if now, err = s.h.NewestInfo(ctx, now); err == nil {
			say, err = c.drafts(now)
		}
	}
	if err != nil {
		return Receipt{}, s.fail("set info", err)
	}
	if len(say) == 0 {
		return Receipt{Head: s.h.State().Head()}, nil
	}
	r, err := s.h.Annotate(ctx, "info", say)
	return s.receipt("set info", r, err)
}

// leaves reports whether a value of the change is set already.
func (c InfoChange) leaves(now checkpoint.Summary) bool {
	for key, value := range c.Meta {
		if have, ok := now.Meta[key]; ok == (value != nil) && (!ok || have == *value) {
			return true
		}
	}
	return c.Title != nil && *c.Title == now.Title || c.Cwd != nil && *c.Cwd == now.Cwd
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
