package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/interop"
)

// stem returns the name of a file without folder and extension.
func stem(file string) string {
	name, _ := strings.CutSuffix(filepath.Base(file), ".zst")
	return strings.TrimSuffix(name, ".jsonl")
}

// file is a file that is imported.
type file struct {
	interop.Source
	program *interop.Program // that wrote it; nil = unknown
	format  interop.Format
	id      string // of its session in its program; "" = the file has none
}

// open opens the file, unpacked where it is packed: packed or not, it is one session.
func (f file) open() (io.ReadCloser, error) {
	if f.program == nil || f.program.Open == nil {
		return f.Open()
	}
	return f.program.Open(f.Source)
}

// identify returns the source of an import of the whole file; nil if a part of it cannot be read.
func (f file) identify(ctx context.Context) (*checkpoint.Source, error) {
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	s, err := fingerprint(ctx, r)
	if closed := r.Close(); closed != nil || err != nil {
		return nil, ctx.Err() // the reader reports what it cannot read
	}
	s.Program, s.Session, s.Size, s.Changed = string(f.format), f.id, f.Size, f.Changed
	return s, nil
}

// fingerprint reads bytes to their end and hashes them. Of Resume it knows the hash only.
func fingerprint(ctx context.Context, r io.Reader) (*checkpoint.Source, error) {
	s := &checkpoint.Source{}
	all, before, now := sha256.New(), make([]byte, checkpoint.SourceTail), make([]byte, checkpoint.SourceTail)
	for {
		n, err := io.ReadFull(r, now)
		_, _ = all.Write(now[:n]) // always nil
		if s.Bytes == 0 {
			s.Head = sum(now[:min(n, checkpoint.SourceHead)])
			before = before[:0]
		}
		s.Bytes += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			s.Tail = sum(slices.Concat(before[min(n, len(before)):], now[:n]))
			if state := hashState(all); state != "" {
				s.Resume = &checkpoint.Resume{Hash: state}
			}
			s.SHA256 = hex.EncodeToString(all.Sum(nil))
			return s, nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		before, now = now, before[:checkpoint.SourceTail]
	}
}

func sum(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// same reports whether a file that has this size and time now, and a name with the id of the session, was not changed
// since it was imported. Another file may have the id in its header, the size and the time.
func same(s *checkpoint.Source, size int64, changed time.Time) bool {
	return s != nil && s.Bytes > 0 && s.Size == size && !changed.IsZero() && s.Changed.Equal(changed)
}

// is reports whether an import was of this session of this program.
func (f file) is(s *checkpoint.Source) bool {
	return s.Session == f.id && s.Program == string(f.format)
}

// begins compares the file with what an import took of it: whole, beginning or another; nothing = the file is shorter.
// It reads the beginning and the end of that part. With all, or where these do not match and the file may be packed, it
// reads the whole part, unpacked.
func (f file) begins(s *checkpoint.Source, all bool) (has earlier, err error) {
	if !all {
		r, err := f.Open()
		if err != nil {
			return another, err
		}
		at, ok := r.(sized)
		if ok {
			has, err = compareParts(at, s)
		}
		packs := f.program != nil && f.program.Open != nil
		if err = errors.Join(err, r.Close()); err != nil || ok && (!packs || has == whole || has == beginning) {
			return has, err
		}
	}
	r, err := f.open()
	if err != nil {
		return another, err
	}
	has = compareWhole(r, s)
	return has, r.Close()
}

// sized is a file with random access.
type sized interface {
	io.ReaderAt
	Size() int64
}

func compareParts(r sized, s *checkpoint.Source) (earlier, error) {
	size := r.Size()
	part := make([]byte, min(size, s.Bytes, checkpoint.SourceTail))
	for _, p := range []struct {
		at   int64
		n    int
		want string
	}{
		{0, int(min(s.Bytes, checkpoint.SourceHead)), s.Head},
		{s.Bytes - int64(len(part)), len(part), s.Tail},
	} {
		if p.at+int64(p.n) > size {
			return nothing, nil
		}
		if _, err := r.ReadAt(part[:p.n], p.at); err != nil && !errors.Is(err, io.EOF) {
			return another, err
		}
		if sum(part[:p.n]) != p.want {
			return another, nil
		}
	}
	switch {
	case size < s.Bytes:
		return nothing, nil
	case size == s.Bytes:
		return whole, nil
	}
	return beginning, nil
}

// compareWhole is begins for what has no random access. Bytes that cannot be read end it.
func compareWhole(r io.Reader, s *checkpoint.Source) earlier {
	all := sha256.New()
	n, err := io.CopyN(all, r, s.Bytes)
	switch {
	case errors.Is(err, io.EOF):
		return nothing
	case err != nil || n < s.Bytes:
		return another // damage of a packed file makes it another one
	case hex.EncodeToString(all.Sum(nil)) != s.SHA256:
		return another
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n == 0 && errors.Is(err, io.EOF) {
		return whole
	}
	return beginning
}

// stamp returns a source with size and time of an opened file, where they can be had.
func stamp(r io.Reader, src interop.Source) interop.Source {
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil {
			src.Size, src.Changed = info.Size(), info.ModTime()
		}
	}
	return src
}

// compare reports what the bytes of an import are of a file. What cannot be read differs.
func compare(now, then io.Reader) earlier {
	have, want := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(then, want)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return another
		}
		m, err := io.ReadFull(now, have[:n])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return another
		}
		switch {
		case !bytes.Equal(have[:m], want[:m]):
			return another
		case m < n:
			return longer
		case !end:
			continue
		}
		if _, err = io.ReadFull(now, have[:1]); errors.Is(err, io.EOF) {
			return whole
		} else if err != nil {
			return another
		}
		return beginning
	}
}
