package coppice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/live"
	"github.com/coppice-go/coppice/internal/transfer"
	"github.com/coppice-go/coppice/transcript"
)

// Import commits foreign lines unchanged as one new session; interop packages and entry.Line yield them. A first line
// of type "session" is the header and gives title and working directory where o does not. Parents are resolved over
// all lines: one may stand behind its child, and of lines with one id the last answers to it. So all are held until
// the last has come: 16 MiB in memory, the rest in a temporary file. It takes commits of at most 4 MiB each, or leaves none.
func (s *Store) Import(ctx context.Context, lines iter.Seq2[transcript.Draft, error], o *SessionOptions) (*Session, error) {
	if o == nil {
		o = &s.o.Session
	}
	h, in, err := s.into(o.ID, o)
	if err != nil {
		return nil, fail("import", "", err)
	}
	in.Screen = s.o.Hooks.BeforeAppend
	begin := func(header []byte) (journal.Genesis, error) { return h.adopt(header) }
	j, err := transfer.Import(ctx, in, lines, begin, o.Original)
	if err == nil {
		err = s.add(h, j)
	}
	if err != nil {
		return nil, fail("import", "", err)
	}
	s.brought(h)
	return h, nil
}

// into makes a handle whose history is still to come. id "" = a new UUIDv7.
func (s *Store) into(id string, o *SessionOptions) (*Session, transfer.Into, error) {
	in := transfer.Into{Fresh: id == ""}
	if id == "" {
		var err error
		if id, err = transcript.NewID(s.o.Now(), s.rand); err != nil {
			return nil, in, err
		}
	}
	h, err := s.session(id, o)
	if err == nil {
		in.Config = h.config()
	}
	return h, in, err
}

// adopt begins the session with a foreign header line; nil = with one of its own.
func (s *Session) adopt(header []byte) (journal.Genesis, error) {
	if header == nil {
		return genesis(s.id, &s.o, s.store.o.Now())
	}
	var h struct {
		Title  string `json:"title"`
		Cwd    string `json:"cwd"`
		Parent string `json:"parentSession"`
		Time   any    `json:"timestamp"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		h.Title, h.Cwd, h.Parent = "", "", "" // fields of other types say nothing
	} else if len(h.Parent) > checkpoint.MaxName {
		h.Parent = "" // a path, as pi has it: the header keeps it
	}
	g := journal.Genesis{Header: header, Title: s.o.Title, Cwd: s.o.Cwd, Parent: s.o.Parent}
	for _, f := range []struct {
		to   *string
		from string
	}{{&g.Title, h.Title}, {&g.Cwd, h.Cwd}, {&g.Parent, h.Parent}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	stamp, _ := h.Time.(string)
	if t, err := time.Parse(time.RFC3339, stamp); err == nil && t.Before(s.store.o.Now()) {
		g.Created = t.UTC()
	}
	return g, nil
}

// fork makes the session of a fork.
func (s *Store) fork(ctx context.Context, from *Session, v *View, id string, o *SessionOptions) (*Session, error) {
	own := s.o.Session
	if o != nil {
		own = *o
	} else {
		own.Title, own.Cwd = v.v.State.Summary.Title, v.v.State.Summary.Cwd
	}
	own.Parent, own.Profile = from.id, cmp.Or(own.Profile, from.Profile())
	h, in, err := s.into(id, &own)
	if err != nil {
		return nil, err
	}
	g, err := genesis(h.id, &own, s.o.Now())
	if err != nil {
		return nil, err
	}
	j, err := transfer.Fork(ctx, in, from.h, v.v, g)
	if err != nil {
		return nil, err
	}
	if err := s.add(h, j); err != nil {
		return nil, err
	}
	s.brought(h)
	if err := h.introduce(ctx); err != nil {
		return nil, errors.Join(err, h.Close(), s.Delete(context.WithoutCancel(ctx), h.id))
	}
	return h, nil
}

// introduce says title and directory once more, in a commit of its own, where entries that were taken over say
// others: what the options ask for counts.
func (s *Session) introduce(ctx context.Context) error {
	var say []transcript.Draft
	now := s.Info()
	if !sameText(now.Title, s.o.Title) {
		say = append(say, entry.Title(s.o.Title))
	}
	if !sameText(now.Cwd, s.o.Cwd) {
		say = append(say, entry.Move(s.o.Cwd))
	}
	if len(say) == 0 {
		return nil
	}
	_, err := s.h.Append(ctx, say, false)
	if err == nil {
		_, err = s.h.Commit(ctx, live.Commit{Reason: "fork"})
	}
	return err
}

// sameText compares a text with one that is wanted, which may come from a summary and be cut there; "" = any.
func sameText(have, want string) bool {
	if cut, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(have, cut) {
		return true
	}
	return want == "" || have == want
}

// Export writes a session as it came: the imported bytes exactly, where they were not pi v3, or the
// lines that were imported; of a session that was made here every line, as pi v3 JSONL.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	return fail("export", id, s.export(ctx, id, func(h *Session) error { return transfer.Original(ctx, h.h, w) }))
}

// ExportPi writes a session as a pi v3 file: the header and every entry, images put back. Where the head
// is not the last line a custom entry "coppice.head" behind it makes pi go on at the right place.
func (s *Store) ExportPi(ctx context.Context, id string, w io.Writer) error {
	tail := func(d transcript.Draft, parent string) ([]byte, error) {
		now := s.o.Now()
		id, err := transcript.NewID(now, s.rand)
		if err != nil {
			return nil, err
		}
		return d.Line(id, parent, now)
	}
	return fail("export", id, s.export(ctx, id, func(h *Session) error { return transfer.Pi(ctx, h.h, w, tail) }))
}

func (s *Store) export(ctx context.Context, id string, write func(*Session) error) error {
	o := s.o.Session
	o.ReadOnly = true
	h, err := s.Open(ctx, id, &o)
	if err != nil {
		return err
	}
	return errors.Join(write(h), h.Close())
}
