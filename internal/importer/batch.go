package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// Batch imports files that lie in the same folders. The zero value is ready to use.
type Batch struct {
	companions map[string]bool   // files whose sessions were imported together with those of other files
	folders    map[string]folder // that were looked at
}

// Contains reports whether a file was imported together with another one, by any name of it.
func (b *Batch) Contains(path string) bool { return len(b.companions) > 0 && b.companions[real(path)] }

// Import imports a file. It reads nothing of one whose size and time are those of its last import, if that holds for
// the files of its agents too; one that has another time and the same content is known by its size and time from then
// on.
func (b *Batch) Import(ctx context.Context, st *coppice.Store, f File, o Options) (Result, error) {
	if f.Err != nil {
		return Result{}, f.Err
	}
	res, s, err := b.known(ctx, st, f, o)
	done := res.Unchanged || !res.Deleted.IsZero()
	if err == nil && s != nil && !done {
		files := res.Files
		res, done, err = resumed(ctx, st, f.source(), s, o)
		res.Files = files
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Path, err)
	} else if !done {
		res, err = Import(ctx, st, f.source(), o)
	}
	if err != nil {
		return Result{}, err
	}
	if !res.Deleted.IsZero() { // so were those of its agents, or they have nowhere to go
		for _, a := range b.agentsOf(f.Path) {
			if OwnerOf(a.Path) == f.Path {
				res.Files = append(res.Files, beside(f.Path, a.Path))
			}
		}
	}
	if b.companions == nil {
		b.companions = map[string]bool{}
	}
	for _, name := range res.Files {
		b.companions[real(filepath.Join(filepath.Dir(f.Path), filepath.FromSlash(name)))] = true
	}
	return res, nil
}

// beside returns the name of a file from the folder of another one.
func beside(from, file string) string {
	name, err := filepath.Rel(filepath.Dir(from), file)
	if err != nil {
		return file
	}
	return filepath.ToSlash(name)
}

// known returns the session of a file that need not be read whole, if the files of its agents did not change; nil = it
// has to be. The result is of a file that did not change, or whose session was deleted; of any other file it is neither
// Unchanged nor Deleted: it grew, and the session is open.
func (b *Batch) known(ctx context.Context, st *coppice.Store, f File, o Options) (res Result, is *found, err error) {
	if o.Session != "" || o.Again || o.Verify || f.Changed.IsZero() {
		return res, nil, nil
	}
	ids := idsOf(f.Path)
	s, has, err := sessionOf(ctx, st, f, ids)
	if s == nil && err == nil {
		if head := headID(f, o); head != "" && !slices.Contains(ids, head) {
			f.unnamed = true
			s, has, err = sessionOf(ctx, st, f, []string{head})
		}
	}
	if s == nil || err != nil {
		return res, nil, err
	}
	defer func() {
		if is == nil {
			err = errors.Join(err, s.close())
		}
	}()
	if o.Format != "" && string(o.Format) != s.source.Program {
		return res, nil, nil
	}
	res = Result{File: f.Path, Format: s.source.Program, Session: s.ID, Diagnostics: []Diagnostic{}}
	if s.gone != nil {
		res.Deleted = s.gone.Deleted
		return res, s, nil
	}
	res.Entries = int(s.Entries)
	res.from(s.source)
	for _, a := range b.agentsOf(f.Path) {
		ids := idsOf(a.Path)
		own, err := b.agent(ctx, st, a, ids)
		if err == nil && own == nil {
			for i, id := range ids {
				ids[i] = layout.Apart(ofParent(id, s.ID), 1)
			}
			own, err = unchanged(ctx, st, a, ids)
		}
		if own == nil || err != nil {
			return Result{}, nil, err
		}
		if own.Parent == s.ID || OwnerOf(a.Path) == f.Path { // the others are of other sessions
			res.Files = append(res.Files, beside(f.Path, a.Path))
		}
	}
	res.Unchanged = has == whole
	return res, s, nil
}

// agent is unchanged for a file with the name of an agent's transcript. One is asked for by each session of its folder.
func (b *Batch) agent(ctx context.Context, st *coppice.Store, a File, ids []string) (*found, error) {
	known := b.folders[filepath.Dir(a.Path)].known
	if s := known[a.Path]; s != nil {
		return s, nil
	}
	s, err := unchanged(ctx, st, a, ids)
	if known != nil && s != nil {
		known[a.Path] = s
	}
	return s, err
}

// unchanged is sessionOf without files that grew.
func unchanged(ctx context.Context, st *coppice.Store, f File, ids []string) (*found, error) {
	s, has, err := sessionOf(ctx, st, f, ids)
	if has == beginning {
		return nil, errors.Join(err, s.close())
	}
	return s, err
}

// sessionOf returns the session with one of some ids, or with one derived from these, that was imported from a file as
// it is (whole), the deleted one of which a file is, if no other may be the file's (removed), or else the one from when
// the file was shorter, if it need not be read whole (beginning), which is open. nil = there is none.
func sessionOf(
	ctx context.Context, st *coppice.Store, f File, ids []string,
) (is *found, has earlier, err error) {
	var shorter *found
	defer func() {
		if is != shorter {
			err = errors.Join(err, shorter.close())
		}
	}()
	for _, id := range ids {
		var deleted *found
		for k := range layout.MaxApart {
			s, err := open(ctx, st, layout.Apart(id, k))
			if err != nil {
				return nil, nothing, err
			}
			if s == nil && deleted != nil {
				return deleted, removed, nil
			}
			if s == nil {
				break
			}
			has, err := f.still(s)
			if err == nil && has == another && deleted == nil && shorter == nil && s.gone == nil &&
				mayGrow(s.source, f.Size) {
				shorter = s
				continue
			}
			switch err = errors.Join(err, s.close()); {
			case err != nil:
				return nil, nothing, err
			case has == whole:
				return s, whole, s.renew(ctx, st, f)
			case has == removed:
				deleted = s
			case s.gone == nil && deleted != nil:
				return nil, nothing, nil // it may be of the file
			}
		}
	}
	return shorter, beginning, nil
}

// still compares a file with a session under its id by size and time, and by its beginning and end if these are others:
// whole, removed or another. Where only the lines of a file that grew name the id, all of what was imported is
// hashed: a copy that was edited has another name too.
func (f File) still(s *found) (earlier, error) {
	if s.source == nil {
		return another, nil
	}
	of := file{Source: f.source(), program: row(interop.Format(s.source.Program)).Program}
	of.format, of.id = interop.Format(s.source.Program), s.source.Session
	switch {
	case s.gone != nil:
		return of.deleted(s.source)
	case !f.unnamed && same(s.source, f.Size, f.Changed):
		return whole, nil
	case f.Size == s.source.Bytes && f.Size > 0, strings.HasSuffix(f.Path, ".zst"):
		if has, err := of.begins(s.source, false); err != nil || has == whole {
			return has, err
		}
	case f.unnamed && mayGrow(s.source, f.Size):
		if has, err := of.begins(s.source, true); err != nil || has != beginning {
			return nothing, err
		}
	}
	return another, nil
}

// renew lets the next import know the file of a session by its size and time. Of two copies it is the newer one, or
// else the packed one: otherwise each would make a commit at each import of both.
func (s *found) renew(ctx context.Context, st *coppice.Store, f File) error {
	if was := s.source; f.Changed.Before(was.Changed) || f.Changed.Equal(was.Changed) && f.Size >= was.Size {
		return nil
	}
	return st.Renew(ctx, s.ID, f.Size, f.Changed)
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

// headBytes is how much of a file is read for the id of its session, where its name does not have one.
const headBytes = 64 << 10

// headID returns the id in the first lines of a file; "" = these have none, or the file is packed.
func headID(f File, o Options) string {
	src := FromFileTo(f.Path, min(f.Size, headBytes))
	format := o.Format
	if format == "" {
		var err error
		if format, err = formats.Told(src); err != nil {
			return ""
		}
	}
	r, err := formats.Open(src, cmp.Or(format, interop.Pi), interop.Options{Now: o.Now})
	if err != nil {
		return ""
	}
	h, err := r.Header()
	if errors.Join(err, r.Close()) != nil || h.Made || layout.ValidID(h.ID) != nil {
		return ""
	}
	return h.ID
}

// maxAgents bounds the files of agents that are looked at for one session; one with more is always read.
const maxAgents = 10_000

// folder is what a folder of sessions holds besides their files.
type folder struct {
	agents  []File          // with the names of agents' transcripts
	folders map[string]bool // by name
	known   map[string]*found
}

// Forget lets the next import look again for the files of agents in the folder of a file.
func (b *Batch) Forget(file string) { delete(b.folders, filepath.Dir(file)) }

// agentsOf returns the files that may be imported with that of a session: session files in its own folder, which has
// its name, and those next to it with the name of an agent's transcript.
func (b *Batch) agentsOf(file string) []File {
	if isAgent(file) {
		return nil
	}
	dir := filepath.Dir(file)
	is, ok := b.folders[dir]
	if !ok {
		is = folderOf(dir)
		if b.folders == nil {
			b.folders = map[string]folder{}
		}
		b.folders[dir] = is
	}
	if !is.folders[stem(file)] {
		return is.agents
	}
	return append(filesBelow(filepath.Join(dir, stem(file))), is.agents...)
}

// folderOf reads a folder. What cannot be read is not imported with a session.
func folderOf(dir string) folder {
	is := folder{folders: map[string]bool{}, known: map[string]*found{}}
	entries, _ := os.ReadDir(dir) // those up to an error
	for _, d := range entries {
		if path := filepath.Join(dir, d.Name()); d.IsDir() {
			is.folders[d.Name()] = true
		} else if isAgent(path) {
			is.agents = appendFile(is.agents, path)
		}
	}
	return is
}

// filesBelow returns the session files in a folder and in those below it.
func filesBelow(dir string) (list []File) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = appendFile(list, path)
		}
		if len(list) > maxAgents {
			return fs.SkipAll
		}
		return nil // what cannot be read is not imported with the session
	})
	return list
}

// appendFile adds a session file. The last one of too many is known to no store.
func appendFile(list []File, path string) []File {
	if !IsSession(path) || isList(filepath.Base(path)) || len(list) > maxAgents {
		return list
	}
	if len(list) == maxAgents {
		return append(list, File{Path: path})
	}
	info, err := stat(path)
	if err != nil {
		return list
	}
	return append(list, File{Path: path, Size: info.Size(), Changed: info.ModTime()})
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
