package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/searchindex"
)

// provenPart bounds how much of a file of this machine is in memory at a time: larger than any object of a store.
const provenPart = 64 << 20

// prove looks for a text in every object of the store, and in what this machine keeps of it.
func (c *cli) prove(ctx context.Context, text string) error {
	if text == "-" {
		raw, err := readAll(ctx, c.stdin)
		if err != nil {
			return err
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	}
	find, err := erase.NewFinder(text)
	if err != nil {
		return usageError("%w", err)
	}
	return c.withStore(ctx, func(st *countedStore) error {
		p, err := st.Prove(ctx, text)
		if err != nil {
			return err
		}
		out := api.Proven{Objects: p.Objects, Bytes: p.Bytes, Found: append([]string{}, p.Found...), IO: st.io()}
		if out.Files, err = c.proveFiles(ctx, st, text, find); err != nil {
			return err
		}
		return c.showProven(out)
	})
}

func (c *cli) showProven(out api.Proven) error {
	var bad error
	if n := len(out.Found) + len(out.Files); n > 0 {
		bad = fmt.Errorf("the text is in %s", term.Count(n, "place", "places"))
	}
	if c.json {
		if err := c.writeJSON(out); err != nil || bad == nil {
			return err
		}
		return reported(bad)
	}
	for _, where := range append(out.Found, out.Files...) {
		if err := c.textf("%s", term.Line(where)); err != nil {
			return err
		}
	}
	if bad != nil {
		return bad
	}
	return c.textf("%s read, %s: none has the text", term.Count(out.Objects, "object", "objects"), term.Size(out.Bytes))
}

// proveFiles returns the files of this machine that have a text: of the search index, the list and the trash.
func (c *cli) proveFiles(
	ctx context.Context, st *countedStore, text string, find *erase.Finder,
) ([]string, error) {
	found := []string{}
	roots := []string{c.listFile(st.url)}
	if index := c.indexFile(st.url); index != "" {
		holds, err := holdsText(ctx, index, text)
		if err != nil {
			return nil, err
		}
		if holds {
			found = append(found, index)
		} else {
			roots = append(roots, index)
		}
		roots = append(roots, index+"-wal", index+"-journal")
	}
	if t, err := c.trash(""); err == nil {
		roots = append(roots, t.Path)
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		if to, err := filepath.EvalSymlinks(root); err == nil {
			root = to // a link at the beginning would not be followed
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.Type().IsRegular() {
				return context.Cause(ctx)
			}
			has := false
			if err == nil {
				has, err = proveFile(path, find)
			}
			if errors.Is(err, fs.ErrNotExist) { // or it went meanwhile
				return nil
			}
			if has {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// holdsText reports whether a row of the search index has a text, which may be in pieces in its file.
func holdsText(ctx context.Context, index, text string) (holds bool, err error) {
	if _, err := os.Stat(index); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	x, err := searchindex.Open(ctx, index)
	if err != nil {
		return false, err
	}
	holds, err = x.Holds(ctx, text)
	return holds, closeAfter(x, err)
}

// proveFile reports whether a file has a text. Of a file that is longer than a part, parts overlap by all that a text
// can take in any of its forms.
func proveFile(path string, find *erase.Finder) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	part := make([]byte, 0, 1<<16)
	for {
		n, err := io.CopyN((*grown)(&part), f, int64(provenPart-len(part)))
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if find.In(part) {
			return true, nil
		}
		if err != nil || n == 0 {
			return false, nil
		}
		part = append(part[:0], part[len(part)-min(len(part), find.Longest()):]...)
	}
}

// grown is bytes that grow as they are written.
type grown []byte

func (g *grown) Write(p []byte) (int, error) {
	*g = append(*g, p...)
	return len(p), nil
}
