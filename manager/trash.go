package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

// Trash is the folder in which deleted sessions are kept until they are restored or the trash is emptied. Each has a
// folder with a store of that session alone, and with a session file that pi reads. Now returns the time of a deletion.
// The program imports backend/local.
//
// Put writes and syncs the copy before it deletes the session, so a crash leaves the session, the copy, or both.
// Restore returns the whole session with commits, states, tags and snapshots, but under a new id if the old one was
// used in the same store.
type Trash struct {
	Path string
	Now  func() time.Time

	sync func(*os.File) error // nil = File.Sync
}

// TrashItem is a session in the trash.
type TrashItem struct {
	Name    string    `json:"name"` // of the item: the argument of Restore and Empty
	Session string    `json:"session"`
	Store   string    `json:"store"`
	Title   string    `json:"title"`
	Cwd     string    `json:"cwd"`
	Deleted time.Time `json:"deleted"`
	Entries uint64    `json:"entries"`
	Bytes   int64     `json:"bytes"` // of its files
}

// The files of an item.
const (
	recordFile  = "info.json"
	linesFile   = "session.jsonl"
	storeFolder = "store"
)

// Put moves a session to the trash: it copies the session and deletes it. store is the address of its store.
//
// If the copy cannot be made, or another writer commits to the session meanwhile (coppice.ErrConflict), the session is
// unchanged, and nothing is added to the trash. After coppice.ErrDeleteUnfinished the copy is in the trash, and a
// repeated Put removes the remaining objects of the session and returns the same item.
func (t *Trash) Put(ctx context.Context, st *coppice.Store, id, store string) (TrashItem, error) {
	item, commit, err := itemOf(ctx, st, id)
	if errors.Is(err, coppice.ErrDeleted) {
		return t.finish(ctx, st, id, store, err)
	}
	if err != nil {
		return TrashItem{}, fmt.Errorf("trash session %s: %w", id, err)
	}
	return t.put(ctx, st, item, commit, store)
}

// PutAt is Put of a session whose newest commit is the one that is named. If the session has another one, it stays as
// it is: coppice.ErrConflict. Of a session that was deleted before, nothing is removed: coppice.ErrDeleted.
func (t *Trash) PutAt(ctx context.Context, st *coppice.Store, id, commit, store string) (TrashItem, error) {
	item, newest, err := itemOf(ctx, st, id)
	if err == nil && newest != commit {
		err = fmt.Errorf("it is not at commit %s any more: %w", commit, coppice.ErrConflict)
	}
	if err != nil {
		return TrashItem{}, fmt.Errorf("trash session %s: %w", id, err)
	}
	return t.put(ctx, st, item, commit, store)
}

// put moves a session to the trash as of its newest commit.
func (t *Trash) put(
	ctx context.Context, st *coppice.Store, item TrashItem, commit, store string,
) (TrashItem, error) {
	var err error
	id := item.Session
	item.Store, item.Deleted = store, t.Now().UTC()
	if item, err = t.keep(ctx, st, item, commit); err != nil {
		return TrashItem{}, fmt.Errorf("trash session %s: nothing was deleted: %w", id, err)
	}
	err = st.DeleteAt(ctx, id, commit)
	switch {
	case err == nil, errors.Is(err, coppice.ErrDeleted): // by another caller just now
		return item, nil
	case errors.Is(err, coppice.ErrDeleteUnfinished):
		return item, fmt.Errorf("trash session %s: %w", id, err)
	}
	return TrashItem{}, errors.Join(fmt.Errorf("trash session %s: %w", id, err), t.remove(item.Name))
}

// finish completes an earlier Put that left objects of the session. Without a copy in the trash Put did not delete the
// session.
func (t *Trash) finish(
	ctx context.Context, st *coppice.Store, id, store string, deleted error,
) (TrashItem, error) {
	items, err := t.List()
	if err != nil {
		return TrashItem{}, fmt.Errorf("trash session %s: %w", id, err)
	}
	for _, item := range items { // the newest first
		if item.Session == id && item.Store == store {
			return item, st.DeleteAt(ctx, id, "")
		}
	}
	return TrashItem{}, deleted
}

// keep writes an item into a temporary folder, syncs it, and renames the folder.
func (t *Trash) keep(ctx context.Context, st *coppice.Store, item TrashItem, commit string) (TrashItem, error) {
	if err := t.makeDir(t.Path); err != nil {
		return TrashItem{}, err
	}
	dir, err := os.MkdirTemp(t.Path, newMark+item.Session+"~*") // no id has a tilde
	if err != nil {
		return TrashItem{}, err
	}
	if err := t.fill(ctx, st, &item, dir, commit); err != nil {
		return TrashItem{}, errors.Join(err, os.RemoveAll(dir))
	}
	item.Name, err = t.place(dir, item)
	if err != nil && item.Name != "" {
		err = errors.Join(err, t.remove(item.Name))
	} else if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return item, err
}

// fill writes an item as of a commit into a folder, syncs it, and sets the item's size.
func (t *Trash) fill(ctx context.Context, st *coppice.Store, item *TrashItem, dir, commit string) error {
	n, err := t.writeFile(filepath.Join(dir, linesFile), func(w io.Writer) error {
		return st.ExportPi(ctx, item.Session, w)
	})
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, storeFolder)
	if err := t.copyOf(ctx, st, item.Session, folder, commit); err != nil {
		return err
	}
	item.Bytes = n
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			item.Bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	record := func(w io.Writer) error { return json.NewEncoder(w).Encode(item) }
	_, err = t.writeFile(filepath.Join(dir, recordFile), record)
	return err
}

// copyOf creates a store in a folder, with a copy of a session as of a commit.
func (t *Trash) copyOf(ctx context.Context, st *coppice.Store, id, folder, commit string) (err error) {
	bin, err := coppice.Open(ctx, folder, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bin.Close()) }()
	s, err := bin.Copy(ctx, st, id, id)
	if err != nil {
		return err
	}
	if s.Head().Commit != commit {
		err = fmt.Errorf("it was changed meanwhile: %w", coppice.ErrConflict)
	}
	return errors.Join(err, s.Close())
}

// itemOf describes a session, and returns its newest commit.
func itemOf(ctx context.Context, st *coppice.Store, id string) (item TrashItem, commit string, err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return item, "", err
	}
	info := s.Info()
	item = TrashItem{Session: id, Title: info.Title, Cwd: info.Cwd, Entries: info.Entries}
	return item, info.Commit, s.Close()
}

// place renames a filled folder, durably. It returns the name together with an error if only durability is missing.
func (t *Trash) place(dir string, item TrashItem) (string, error) {
	if err := t.syncDir(dir); err != nil {
		return "", err
	}
	base := item.Deleted.Format("20060102T150405Z") + "-" + strings.ToLower(item.Session)
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		if _, err := os.Lstat(filepath.Join(t.Path, name)); err == nil {
			continue
		}
		if err := os.Rename(dir, filepath.Join(t.Path, name)); err != nil {
			return "", err
		}
		return name, t.syncDir(t.Path)
	}
}

// List returns the items of the trash, the newest first. Other files are skipped.
func (t *Trash) List() ([]TrashItem, error) {
	dirs, err := os.ReadDir(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var items []TrashItem
	for _, d := range dirs {
		if strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if item, err := t.read(d.Name()); err == nil {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b TrashItem) int {
		return cmp.Or(b.Deleted.Compare(a.Deleted), cmp.Compare(b.Name, a.Name))
	})
	return items, nil
}

// maxRecord bounds the record of an item, in bytes.
const maxRecord = 1 << 20

func (t *Trash) read(name string) (TrashItem, error) {
	var r TrashItem
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return r, fmt.Errorf("%q is not an item of the trash: %w", name, fs.ErrNotExist)
	}
	path := filepath.Join(t.Path, name, recordFile)
	info, err := os.Stat(path)
	if err != nil {
		return r, err
	}
	if info.Size() > maxRecord {
		return r, fmt.Errorf("%s: %d bytes, the limit is %d", path, info.Size(), maxRecord)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	r.Name = name
	return r, nil
}

// Find returns an item by its name, by the id of its session, or by a prefix of either. fs.ErrNotExist if there is
// none; of several items of one session the newest is returned, and a prefix of several sessions is
// transcript.ErrAmbiguous.
func (t *Trash) Find(word string) (TrashItem, error) {
	items, err := t.List()
	if err != nil {
		return TrashItem{}, err
	}
	var found []TrashItem
	for _, it := range items {
		if it.Name == word || it.Session == word {
			return it, nil
		}
		if word != "" && (strings.HasPrefix(it.Name, word) || strings.HasPrefix(it.Session, word)) {
			found = append(found, it)
		}
	}
	switch len(found) {
	case 0:
		return TrashItem{}, fmt.Errorf("no item of the trash is named %q: %w", word, fs.ErrNotExist)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = it.Name
	}
	return TrashItem{}, fmt.Errorf("%q is not unique in the trash: %w: %s",
		word, transcript.ErrAmbiguous, shortid.Candidates(names))
}

// Empty permanently removes the items that were deleted before a time, with copies that a crash before it left
// incomplete, and returns the items.
func (t *Trash) Empty(before time.Time) ([]TrashItem, error) {
	return t.removeThose(func(it TrashItem) bool { return it.Deleted.Before(before) })
}

// removeThose permanently removes the chosen items and what a crash left of removals. It also removes the chosen
// incomplete copies: chosen gets only their session and time. A Put that is writing such a copy fails, and deletes
// nothing. removeThose returns the removed items, also if it fails.
func (t *Trash) removeThose(chosen func(TrashItem) bool) (gone []TrashItem, err error) {
	items, err := t.List()
	if err != nil {
		return nil, err
	}
	if err := t.removeHalf(chosen); err != nil {
		return nil, err
	}
	for _, it := range items {
		if !chosen(it) {
			continue
		}
		if err := t.remove(it.Name); err != nil {
			return gone, err
		}
		gone = append(gone, it)
	}
	return gone, nil
}

func (t *Trash) removeHalf(chosen func(TrashItem) bool) error {
	dirs, err := os.ReadDir(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range dirs {
		goes := strings.HasPrefix(d.Name(), goneMark)
		if name, ok := strings.CutPrefix(d.Name(), newMark); ok {
			session, _, _ := strings.Cut(name, "~")
			info, e := d.Info()
			goes = e == nil && chosen(TrashItem{Session: session, Deleted: info.ModTime()})
		}
		if goes {
			err = errors.Join(err, os.RemoveAll(filepath.Join(t.Path, d.Name())))
		}
	}
	return err
}

// The beginnings of the names of an item that is being removed, and of one that is being written: the id of its session
// and a tilde follow.
const (
	goneMark = ".gone-"
	newMark  = ".new-"
)

// remove renames the folder first, so that a partly removed item is never listed.
func (t *Trash) remove(name string) error {
	dir := filepath.Join(t.Path, goneMark+name)
	if err := os.Rename(filepath.Join(t.Path, name), dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// makeDir creates a folder and its missing parents. Their names are durable when it returns.
func (t *Trash) makeDir(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(path)
	if err := t.makeDir(above); err != nil { // as deep as the path has components
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := t.syncDir(above); err != nil {
		return errors.Join(err, os.Remove(path)) // otherwise the next Put would take it for durable
	}
	return nil
}

func (t *Trash) syncFile(f *os.File) error {
	if t.sync != nil {
		return t.sync(f)
	}
	return f.Sync()
}

// writeFile makes a file and syncs it, and returns its length.
func (t *Trash) writeFile(path string, write func(io.Writer) error) (n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return 0, err
	}
	if err := t.syncFile(f); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
