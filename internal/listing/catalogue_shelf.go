package listing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

// orphaned is the age from which on a block that the head does not name is removed. The writer of a younger block may
// be about to write a head that names it.
const orphaned = time.Hour

// shelf stores the objects of a catalogue.
type shelf interface {
	get(ctx context.Context, name string) (p []byte, version string, err error)
	// put stores an object. With onCondition it only replaces the version was, or creates the object if was is "".
	put(ctx context.Context, name string, p []byte, was string, onCondition bool) (version string, err error)
	// keep removes the blocks that the head was names and the head now does not, and orphaned blocks.
	keep(ctx context.Context, was, now head)
}

// shelf returns where the catalogue of a store is stored; nil = it is not stored.
func (c *Catalogue) shelf(b backend.Backend) shelf {
	if _, appends := b.(backend.Appender); !appends {
		return objects{b}
	}
	if c.Dir == "" {
		return nil
	}
	return folder{c.Dir}
}

// readHead reads the head of a catalogue. On an error the result has no more than the version of the object.
func readHead(ctx context.Context, at shelf) (*head, error) {
	p, version, err := at.get(ctx, headName)
	if err != nil {
		return &head{}, err
	}
	h, err := decodeHead(p)
	if err != nil {
		h = &head{}
	}
	h.version = version
	return h, err
}

// readBlock reads the rows of a block, without those for whose summary chosen returns false; nil = all rows.
func readBlock(ctx context.Context, at shelf, b block, chosen func(sum []byte) bool) ([]row, error) {
	p, _, err := at.get(ctx, blockPrefix+b.name)
	if err != nil {
		return nil, err
	}
	rows, n, err := decodeBlock(p, chosen)
	if err != nil || n != b.rows || checksum(p) != b.crc {
		return nil, errors.Join(err, errRows)
	}
	return rows, nil
}

var errRows = errors.New("it is another block of a catalogue than its head names")

// objects stores a catalogue in the store itself, for a store that only replaces objects.
type objects struct{ b backend.Backend }

func (o objects) get(ctx context.Context, name string) ([]byte, string, error) {
	p, info, err := o.b.Get(ctx, layout.Catalogue+name, backend.Range{})
	return p, string(info.Version), err
}

func (o objects) put(ctx context.Context, name string, p []byte, was string, onCondition bool) (string, error) {
	cond := backend.Cond{}
	switch {
	case onCondition && was == "":
		cond = backend.IfAbsent()
	case onCondition:
		cond = backend.IfMatch(backend.Version(was))
	}
	info, err := o.b.Put(ctx, layout.Catalogue+name, p, cond)
	return string(info.Version), err
}

func (o objects) keep(ctx context.Context, was, now head) {
	named := now.names()
	for _, b := range was.blocks {
		if !named[blockPrefix+b.name] {
			_ = o.b.Delete(ctx, layout.Catalogue+blockPrefix+b.name) // on an error it is removed later, as orphaned
		}
	}
	var old []string
	for info, err := range o.b.List(ctx, backend.ListOptions{Prefix: layout.Catalogue + blockPrefix}) {
		if err != nil {
			return
		}
		age := time.UnixMilli(now.taken).Sub(info.ModTime)
		if name := strings.TrimPrefix(info.Key, layout.Catalogue); !named[name] && age > orphaned {
			old = append(old, info.Key)
		}
	}
	for _, key := range old {
		_ = o.b.Delete(ctx, key)
	}
}

// names returns the set of names of the objects of a catalogue.
func (h *head) names() map[string]bool {
	names := map[string]bool{headName: true}
	for _, b := range h.blocks {
		names[blockPrefix+b.name] = true
	}
	return names
}

// folder stores a catalogue in a folder of the local disk, for a store that appends.
type folder struct{ dir string }

func (f folder) get(_ context.Context, name string) ([]byte, string, error) {
	p, err := os.ReadFile(filepath.Join(f.dir, name))
	return p, version(p), err
}

// version returns the version of a file of a catalogue: its first bytes, which include the checksum; "" for no file.
func version(p []byte) string { return string(p[:min(headBytes, len(p))]) }

func (f folder) put(ctx context.Context, name string, p []byte, was string, onCondition bool) (string, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(f.dir, ".temp-*")
	if err != nil {
		return "", err
	}
	_, err = temp.Write(p)
	if err = errors.Join(err, temp.Close()); err == nil && onCondition {
		// Another process can replace the file between this check and the rename. Its rows are lost then, and the next
		// listing reads those sessions again.
		if _, now, _ := f.get(ctx, name); now != was {
			err = backend.ErrPrecondition
		}
	}
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(f.dir, name))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return version(p), err
}

func (f folder) keep(_ context.Context, _, now head) {
	named := now.names()
	f.remove(func(name string) bool { return strings.HasPrefix(name, blockPrefix) && !named[name] })
}

// clear removes the catalogue.
func (f folder) clear(context.Context) {
	f.remove(func(name string) bool {
		return name == headName || strings.HasPrefix(name, blockPrefix) || strings.HasPrefix(name, ".temp-")
	})
	_ = os.Remove(f.dir) // fails if it contains other files
}

// remove removes the files for whose names chosen returns true.
func (f folder) remove(chosen func(name string) bool) {
	files, _ := os.ReadDir(f.dir)
	for _, file := range files {
		if chosen(file.Name()) {
			_ = os.Remove(filepath.Join(f.dir, file.Name()))
		}
	}
}
