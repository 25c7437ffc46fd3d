package manager

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/secrets"
)

// Secret is a credential in a session.
type Secret struct {
	secrets.Place
	In    string // a constant below
	Entry string // its id
	Name  string // of the document
	Seq   uint64 // of the newest commit whose state, document or context has it
	Line  uint64 // of the imported file, from 1
}

// The values of Secret.In.
const (
	InEntry    = "entry"
	InState    = "state"
	InDocument = "document"
	InSession  = "session"  // title, directory and metadata
	InContext  = "context"  // the explicit context
	InOriginal = "original" // lines of the imported file, for what no entry has
)

// maxSeen bounds the credentials of one session by which others are recognised as the same.
const maxSeen = 1 << 16

// Secrets yields the credentials in a session: in every entry of every branch as it was appended, hidden ones and
// amendments included; in the state and the documents of every commit; in title, directory and metadata; and in the
// imported file, where entries do not have the same. One that several commits have at one path is yielded once. Images
// are not looked at, and of a damaged session all that is intact comes before the error. It reads the whole session,
// and holds one entry at a time, one state, and what it found.
func Secrets(ctx context.Context, st *coppice.Store, id string) iter.Seq2[Secret, error] {
	return func(yield func(Secret, error) bool) {
		s, err := st.Salvage(ctx, id)
		if err != nil {
			yield(Secret{}, err)
			return
		}
		f := &secretFinder{yield: yield, seen: map[seenSecret]bool{}}
		err = errors.Join(f.session(ctx, st, s), s.Close())
		if err != nil && !errors.Is(err, errStopped) {
			yield(Secret{}, err)
		}
	}
}

// errStopped ends the search where its caller wants no more.
var errStopped = errors.New("stopped")

// seenSecret is a credential at a place, or anywhere if the place is empty.
type seenSecret struct {
	rule, in, path string
	hash           uint64
}

type secretFinder struct {
	yield func(Secret, error) bool
	seen  map[seenSecret]bool
}

func (f *secretFinder) session(ctx context.Context, st *coppice.Store, s *coppice.Session) error {
	damage := f.entries(ctx, s)
	if errors.Is(damage, errStopped) {
		return damage
	}
	info := s.Info()
	about, err := rawjson.Marshal("session", map[string]any{"title": info.Title, "cwd": info.Cwd, "meta": info.Meta})
	if err != nil {
		return err
	}
	if err := f.found(Secret{In: InSession}, secrets.FindJSON(about)); err != nil {
		return err
	}
	if err := f.states(ctx, s); err != nil {
		return errors.Join(damage, err)
	}
	if info.Source != nil {
		damage = errors.Join(damage, f.original(ctx, st, s.ID()))
	}
	return damage
}

// found yields what was found at a place.
func (f *secretFinder) found(at Secret, list []secrets.Place) error {
	for _, p := range list {
		if at.In == InEntry {
			f.see(seenSecret{rule: p.Rule, hash: p.Hash})
		}
		at.Place = p
		if !f.yield(at, nil) {
			return errStopped
		}
	}
	return nil
}

// see remembers a credential, and reports whether it was known.
func (f *secretFinder) see(s seenSecret) bool {
	if f.seen[s] {
		return true
	}
	if len(f.seen) < maxSeen {
		f.seen[s] = true
	}
	return false
}

func (f *secretFinder) entries(ctx context.Context, s *coppice.Session) error {
	for e, err := range s.Originals(ctx) {
		if err != nil {
			return err
		}
		if err := f.found(Secret{In: InEntry, Entry: e.ID}, secrets.FindJSON(e.Raw)); err != nil {
			return err
		}
	}
	return nil
}

// states looks at the state and the documents of every commit. What is the same as in the commit after it is not looked
// at again.
func (f *secretFinder) states(ctx context.Context, s *coppice.Session) error {
	last := map[string]uint64{} // hashes of what was looked at, by place
	for at, err := range s.States(ctx, coppice.Target{}) {
		if err != nil {
			return err
		}
		doc := at.Document
		if err := f.look(last, Secret{In: InState, Seq: at.Commit.Seq}, doc.State); err != nil {
			return err
		}
		if doc.Context != nil {
			raw, err := rawjson.Marshal("context", doc.Context)
			if err == nil {
				err = f.look(last, Secret{In: InContext, Seq: at.Commit.Seq}, raw)
			}
			if err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(doc.Docs)) {
			if err := f.look(last, Secret{In: InDocument, Name: name, Seq: at.Commit.Seq}, doc.Docs[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// look looks at a part of a document if it differs from that of the commit after it.
func (f *secretFinder) look(last map[string]uint64, at Secret, raw []byte) error {
	place, sum := at.In+" "+at.Name, maphash.Bytes(seed, raw)
	if was, ok := last[place]; ok && was == sum || len(raw) == 0 {
		return nil
	}
	last[place] = sum
	news := slices.DeleteFunc(secrets.FindJSON(raw), func(p secrets.Place) bool {
		return f.see(seenSecret{p.Rule, place, p.Path, p.Hash})
	})
	return f.found(at, news)
}

// seed is of hashes by which a part of a document is recognised.
var seed = maphash.MakeSeed()

// original looks at the lines of the imported file for what no entry has. Each line is as long as a secrets.Writer
// takes it.
func (f *secretFinder) original(ctx context.Context, st *coppice.Store, id string) error {
	w := secrets.NewWriter(io.Discard)
	w.Each = func(line uint64, found []secrets.Place) error {
		found = slices.DeleteFunc(found, func(p secrets.Place) bool {
			return f.seen[seenSecret{rule: p.Rule, hash: p.Hash}]
		})
		return f.found(Secret{In: InOriginal, Line: line}, found)
	}
	if err := st.Export(ctx, id, w); err != nil {
		return err
	}
	return w.Close()
}
