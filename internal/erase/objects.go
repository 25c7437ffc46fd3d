package erase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/snapshot"
)

// object takes what goes out of a checkpoint or a snapshot, but for its tail, and reports whether there was
// anything.
func (e *eraser) object(o *checkpoint.Object) (changed bool) {
	swap := func(text *string) {
		if now := e.found.clean(*text); now != *text {
			*text, changed = now, true
		}
	}
	swap(&o.Summary.Title)
	swap(&o.Summary.Preview)
	swap(&o.Summary.First)
	if now := e.header(o.Header); string(now) != string(o.Header) {
		o.Header, changed = now, true
	}
	if now := e.source(o.Source); now != o.Source {
		o.Source, changed = now, true
	}
	if now, err := e.redact(o.Document); err == nil && string(now) != string(o.Document) {
		o.Document, changed = now, true
	}
	hidden, bare := map[uint64]bool{}, false
	w := &o.Window
	amended, by := w.Amended, w.AmendedBy
	w.Amended, w.AmendedBy = nil, nil
	for i, ord := range amended {
		_, goes := e.found.erased[ord]
		if e.found.amendments[by[i]] {
			changed, bare = true, bare || !goes
			continue
		}
		hidden[ord] = goes // by an amendment without content: the pool has the head of the line
		w.Amended, w.AmendedBy = append(w.Amended, ord), append(w.AmendedBy, by[i])
	}
	if bare { // the pool has what an amendment put in place of an entry that stays: the window is made of the path
		o.Window, o.Pool = checkpoint.WindowState{Profile: w.Profile, MaxBytes: w.MaxBytes}, nil
	}
	for ord, line := range o.Pool {
		gone, ok := e.found.erased[ord]
		if ok && !hidden[ord] && string(line) != string(gone.stub) {
			o.Pool[ord], changed = gone.stub, true
		}
	}
	for sum := range maps.Keys(o.Blobs) {
		if e.found.removed[sum] && !e.found.images[sum] {
			delete(o.Blobs, sum)
			changed = true
		}
	}
	return changed
}

// list returns the objects of a folder of the session, of its own incarnation.
func (e *eraser) list(ctx context.Context, folder string) (out []backend.Info, err error) {
	prefix := layout.SessionPrefix(e.cfg.Session) + folder
	for info, err := range e.cfg.Backend.List(ctx, backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		if layout.Epoch(info.Key) >= e.cfg.Since {
			out = append(out, info)
		}
	}
	return out, nil
}

// snapshots writes snapshots again in place, without what goes, as those of a session of which seq erased something:
// one that is not, and arrives later, is of a state before (journal.ReadSnapshot). One that cannot be read is removed,
// and so is one that arrived after an earlier erasure: what it has is not known, and the log has every state.
func (e *eraser) snapshots(ctx context.Context, seq uint64) error {
	all, err := e.list(ctx, layout.Snapshots)
	if err != nil {
		return err
	}
	for _, info := range all {
		_, name := layout.ParseOwn(path.Base(info.Key))
		if _, _, ok := snapshot.ParseName(name); !ok {
			continue
		}
		if err := e.snapshot(ctx, info.Key, seq); err != nil {
			return err
		}
	}
	return nil
}

func (e *eraser) snapshot(ctx context.Context, key string, seq uint64) error {
	for range e.cfg.Limits.OrDefaults().Attempts {
		p, info, err := e.cfg.Backend.Get(ctx, key, backend.Range{})
		if errors.Is(err, fs.ErrNotExist) {
			return nil // pruned meanwhile
		}
		if err != nil {
			return err
		}
		o, err := checkpoint.DecodeObject(p)
		if err != nil || o.Erased < e.last {
			return e.remove(ctx, key)
		}
		if !e.object(o) && o.Erased >= seq {
			return nil
		}
		o.Erased = max(o.Erased, seq)
		body, err := o.Encode()
		if err != nil {
			return err
		}
		_, err = e.cfg.Backend.Put(ctx, key, body, backend.IfMatch(info.Version))
		if err == nil {
			e.wrote(key, len(body))
			return nil
		}
		if !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
	}
	return fmt.Errorf("%s changes again and again: %w", key, backend.ErrBusy)
}

// tornText takes the place of bytes that were moved aside.
const tornText = "erased\n"

// torn empties what was moved aside, all of it: to which entries it belongs is not known.
func (e *eraser) torn(ctx context.Context) error {
	all, err := e.list(ctx, layout.Torn)
	if err != nil {
		return err
	}
	for _, info := range all {
		p, now, err := e.cfg.Backend.Get(ctx, info.Key, backend.Range{})
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && string(p) == tornText:
			continue
		case err != nil:
			return err
		}
		if _, err := e.cfg.Backend.Put(ctx, info.Key, []byte(tornText), backend.IfMatch(now.Version)); err != nil {
			return err
		}
		e.wrote(info.Key, len(tornText))
	}
	return nil
}
