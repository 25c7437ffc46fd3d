package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-go/coppice/internal/vfs"
)

// Log appends to an audit log. Safe for concurrent use.
type Log struct {
	fs   vfs.FS // its folder
	name string
	now  func() time.Time

	mu sync.Mutex
}

// Open returns the log in a file, which the first append creates. Close it.
func Open(file string, now func() time.Time) *Log {
	dir, name := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	return &Log{fs: vfs.OS(dir), name: name, now: now}
}

// Close releases the folder.
func (l *Log) Close() error { return l.fs.Close() }

// End records how an act ended, and to what it was done.
type End func(ctx context.Context, result, code string, ids ...string) error

// Begin records that an act begins. After an error it must not be done. The caller calls end once.
func (l *Log) Begin(ctx context.Context, a Act) (end End, err error) {
	of, err := l.append(ctx, Line{Act: a, Result: Begun})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, result, code string, ids ...string) error {
		if len(ids) > 0 {
			a.IDs = ids
		}
		_, err := l.append(ctx, Line{Act: a, Result: result, Code: code, Of: of})
		return err
	}, nil
}

// Note records an act by one line.
func (l *Log) Note(ctx context.Context, a Act, result, code string) error {
	_, err := l.append(ctx, Line{Act: a, Result: result, Code: code})
	return err
}

// append makes a line durable, and returns its hash.
func (l *Log) append(ctx context.Context, line Line) (hash string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("audit %s: %w; the act %s is not recorded", l.name, err, line.Act.Act)
	}
	f, err := l.fs.OpenFile(l.name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }() // what was written is synced
	if err := lock(ctx, f); err != nil {
		return fail(err)
	}
	last, rest, ends, err := tail(f)
	if err != nil {
		return fail(err)
	}
	if last == nil { // the file may be new
		if err := vfs.SyncDir(l.fs, "."); err != nil {
			return fail(err)
		}
	}
	if len(rest) > 0 {
		mark := Line{Act: Act{Act: torn}, Result: torn, Torn: hashOf(rest)}
		if last, err = l.write(f, mark, last, ends); err != nil {
			return fail(err)
		}
		ends = true
	}
	p, err := l.write(f, line, last, ends)
	if err != nil {
		return fail(err)
	}
	return hashOf(p), nil
}

// write writes a line after another one, and syncs it: only the last write can be torn by a crash. ends = the file ends
// with the end of a line.
func (l *Log) write(f vfs.File, line Line, last []byte, ends bool) (p []byte, err error) {
	line.Prev, line.Time, line.Act = hashOf(last), l.now().UTC(), line.bounded()
	if p, err = json.Marshal(line); err != nil {
		return nil, err
	}
	all := append(append([]byte(nil), p...), '\n')
	if !ends {
		all = append([]byte("\n"), all...)
	}
	n, err := f.Write(all)
	if err == nil && n < len(all) {
		err = errors.New("the write was short")
	}
	if err == nil {
		err = f.Datasync()
	}
	return p, err
}

// Bounds of the wait for another process, which holds the lock for one append.
const (
	lockTries = 5000
	lockPause = 2 * time.Millisecond
)

var errLocked = errors.New("another process holds the lock of the file")

func lock(ctx context.Context, f vfs.File) error {
	for range lockTries {
		if ok, err := f.TryLock(true); ok || err != nil {
			return err
		}
		pause := time.NewTimer(lockPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
	return errLocked
}

// tail returns the last whole line, without its end, nil = there is none, the bytes after it, which are of no whole
// line, and whether the file ends with the end of a line.
func tail(f vfs.File) (last, rest []byte, ends bool, err error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, false, err
	case !st.Mode.IsRegular():
		return nil, nil, false, errors.New("it is no plain file")
	}
	from := max(0, st.Size-window)
	p := make([]byte, st.Size-from)
	if n, err := f.ReadAt(p, from); n < len(p) {
		return nil, nil, false, fmt.Errorf("read its end: %w", err)
	}
	ends = len(p) == 0 || p[len(p)-1] == '\n'
	for end := len(p); end > 0; {
		begin := bytes.LastIndexByte(p[:end], '\n') + 1
		if begin == 0 && from > 0 {
			break
		}
		if _, ok := parse(p[begin:end]); ok {
			rest = p[end:]
			if len(rest) > 0 { // the end of the line itself
				rest = rest[1:]
			}
			return p[begin:end], rest, ends, nil
		}
		end = begin - 1
	}
	if from > 0 {
		return nil, nil, false, errors.New("its end has no whole line: move the file away")
	}
	return nil, p, ends, nil
}
