package importer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
)

// Batch imports files that lie in the same folders. The zero value is ready to use.
type Batch struct {
	companions map[string]bool   // files whose sessions were imported together with those of other files
	agents     map[string][]File // by folder: files in it with the name of an agent's transcript
}

// Contains reports whether a file was imported together with another one, by any name of it.
func (b *Batch) Contains(path string) bool { return len(b.companions) > 0 && b.companions[real(path)] }

// Import imports a file. It reads nothing of one whose size and time are those of its last import, if that holds for
// the files of its agents too.
func (b *Batch) Import(ctx context.Context, st *coppice.Store, f File, o Options) (Result, error) {
	if f.Err != nil {
		return Result{}, f.Err
	}
	res, known, err := b.known(ctx, st, f, o)
	if err == nil && !known {
		res, err = Import(ctx, st, f.source(), o)
	}
	if err != nil {
		return Result{}, err
	}
	if b.companions == nil {
		b.companions = map[string]bool{}
	}
	for _, name := range res.Files {
		b.companions[real(filepath.Join(filepath.Dir(f.Path), filepath.FromSlash(name)))] = true
	}
	return res, nil
}

// known returns the session of a file that did not change since its import.
func (b *Batch) known(ctx context.Context, st *coppice.Store, f File, o Options) (res Result, known bool, err error) {
	if o.Session != "" || o.Again || o.Verify || f.Changed.IsZero() {
		return res, false, nil
	}
	s, err := sessionOf(ctx, st, f, idsOf(f.Path))
	if s == nil || err != nil || o.Format != "" && string(o.Format) != s.source.Program {
		return res, false, err
	}
	res = Result{
		File: f.Path, Format: s.source.Program, Session: s.ID, Entries: int(s.Entries), Unchanged: true,
		Diagnostics: []Diagnostic{},
	}
	for _, a := range b.agentsOf(f.Path) {
		var ids []string
		for _, id := range idsOf(a.Path) {
			ids = append(ids, id, apartFrom(ofParent(id, s.ID), 1))
		}
		if s, err := sessionOf(ctx, st, a, ids); s == nil || err != nil {
			return Result{}, false, err
		}
		if name, err := filepath.Rel(filepath.Dir(f.Path), a.Path); err == nil {
			res.Files = append(res.Files, filepath.ToSlash(name))
		}
	}
	return res, true, nil
}

// sessionOf returns the session with one of some ids, or with one derived from these, that was imported from a file of
// this size and time; nil = there is none.
func sessionOf(ctx context.Context, st *coppice.Store, f File, ids []string) (*found, error) {
	for _, id := range ids {
		for k := range maxApart {
			s, err := look(ctx, st, apartFrom(id, k))
			if s == nil || err != nil {
				if err != nil {
					return nil, err
				}
				break
			}
			if s.gone == nil && same(s.source, f.Size, f.Changed) {
				return s, nil
			}
		}
	}
	return nil, nil
}

// idsOf returns the ids that the name of a file may have, in any program.
func idsOf(file string) (ids []string) {
	for p := range programs {
		if p.ID == nil {
			continue
		}
		if id := p.ID(filepath.Base(file)); layout.ValidID(id) == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// maxAgents bounds the files of agents that are looked at for one session; one with more is always read.
const maxAgents = 10_000

// agentsOf returns the files that may be imported with that of a session: session files in its own folder, which has
// its name, and those next to it with the name of an agent's transcript.
func (b *Batch) agentsOf(file string) []File {
	dir := filepath.Dir(file)
	beside, ok := b.agents[dir]
	if !ok {
		beside = filesBelow(dir, false)
		if b.agents == nil {
			b.agents = map[string][]File{}
		}
		b.agents[dir] = beside
	}
	if isAgent(file) {
		return nil
	}
	return append(filesBelow(filepath.Join(dir, stem(file)), true), beside...)
}

// filesBelow returns the session files in a folder: with deep, and in those below it, whatever their names; else those
// with the name of an agent's transcript.
func filesBelow(dir string, deep bool) (list []File) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not imported with the session
		case d.IsDir() && path != dir && !deep:
			return fs.SkipDir
		case d.IsDir(), !IsSession(path), !deep && !isAgent(path), isList(d.Name()):
			return nil
		case len(list) == maxAgents:
			list = append(list, File{Path: path}) // known to no store
			return fs.SkipAll
		}
		if info, err := os.Stat(path); err == nil {
			list = append(list, File{Path: path, Size: info.Size(), Changed: info.ModTime()})
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}

// real returns an absolute path without links, or the path unchanged if that fails.
func real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// source returns the source of a file, as large as it was when it was found.
func (f File) source() interop.Source {
	src := FromFileTo(f.Path, f.Size)
	src.Size, src.Changed = f.Size, f.Changed
	return src
}
