// Package ingest brings session files into a store: it finds them, and imports each as a session of its
// own. Files are only read, never written to; one that cannot be read, or holds no session, stops none of
// the others.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a file that is to be imported, or Err, why it cannot be.
type File struct {
	Path string
	Size int64
	Err  error
}

var errNotRegular = errors.New("not a regular file")

// Find gives the files that paths name, in their order: a file itself, whatever it is called; of a folder
// every *.jsonl file below it, in the order of their names. Links below a folder are not followed. A path
// that cannot be read, or a folder without such files, is a File with an error.
func Find(ctx context.Context, paths []string) []File {
	var found []File
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			found = append(found, File{Path: p, Err: err})
		case info.IsDir():
			below := walk(ctx, p)
			if len(below) == 0 {
				below = []File{{Path: p, Err: fmt.Errorf("no *.jsonl file in %s: %w", p, fs.ErrNotExist)}}
			}
			found = append(found, below...)
		case !info.Mode().IsRegular():
			found = append(found, File{Path: p, Err: fmt.Errorf("%s: %w", p, errNotRegular)})
		default:
			found = append(found, File{Path: p, Size: info.Size()})
		}
	}
	return found
}

func walk(ctx context.Context, dir string) []File {
	var found []File
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			found = append(found, File{Path: p, Err: err})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".jsonl") && !strings.HasSuffix(p, ".jsonl.zst") || !d.Type().IsRegular() {
			return nil
		}
		f := File{Path: p}
		if info, err := d.Info(); err != nil {
			f.Err = err
		} else {
			f.Size = info.Size()
		}
		found = append(found, f)
		return nil
	})
	if err != nil {
		found = append(found, File{Path: dir, Err: err})
	}
	return found
}
