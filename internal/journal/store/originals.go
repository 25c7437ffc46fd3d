package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

// The bounds of an imported file (I15). A file of at most Store.Part bytes is one object; a longer one is several parts
// and a list of them. While a file is stored, at most 2 * partLanes + 2 parts are in memory.
const (
	partsMost = 1 << 17         // parts of one file: 1 TiB
	onceMax   = 4 << 30         // bytes of a file in one object: earlier releases did not store files in parts
	sizedPart = sha256.Size + 8 // bytes of a part in a list with sizes
	listBytes = partsMost * sizedPart
	partLanes = 2 // parts that are compressed at once
)

// partList is the summary of a list of parts; its body is their SHA-256s, end to end.
type partList struct {
	Sum  string `msgpack:"sum"`  // hex SHA-256 of the whole
	Size int64  `msgpack:"size"` // bytes of the whole
	Part int64  `msgpack:"part"` // bytes of each part but the last; 0 = the body has a size after each SHA-256
}

// part is a piece of a file on its way into the store.
type part struct {
	raw    *bytes.Buffer
	packed []byte
	sum    [sha256.Size]byte
}

// PutOriginal stores an imported file of at most 1 TiB, compressed, and returns its SHA-256, under which it is stored.
func (s *Store) PutOriginal(ctx context.Context, r io.Reader) (sum string, err error) {
	whole := sha256.New()
	var size int64
	idle := make(chan *bytes.Buffer, 2*partLanes+2)
	ended := false
	pipe := parallel.NewPipe(partLanes, func() (part, error) {
		if ended {
			return part{}, io.EOF
		}
		raw := next(idle)
		if size > 0 {
			raw.Grow(int(s.Part) + bytes.MinRead)
		}
		n, err := io.CopyN(raw, r, s.Part)
		if errors.Is(err, io.EOF) && (n > 0 || size == 0) {
			ended, err = true, nil // the last part; an empty file has one part
		}
		size += n
		whole.Write(raw.Bytes())
		return part{raw: raw}, err
	}, func(p part) part {
		p.sum, p.packed = sha256.Sum256(p.raw.Bytes()), codec.Compress(nil, p.raw.Bytes(), codec.Default)
		return p
	})
	defer pipe.Close()
	var sums []byte
	for {
		p, err := pipe.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the original: %w", err)
		}
		if len(sums) == partsMost*sha256.Size {
			return "", fmt.Errorf("original of over %d parts of %d bytes: %w", partsMost, s.Part, codec.ErrLimit)
		}
		idle <- p.raw
		sums = append(sums, p.sum[:]...)
		key := layout.OriginalKey(s.Session, s.Since(), hex.EncodeToString(p.sum[:]))
		if err := s.Create(ctx, key, p.packed); err != nil {
			return "", err
		}
	}
	sum = hex.EncodeToString(whole.Sum(nil))
	if len(sums) == sha256.Size {
		return sum, nil // the part is the whole
	}
	return sum, s.putList(ctx, partList{Sum: sum, Size: size, Part: s.Part}, sums)
}

// next returns an empty buffer, one that was used before if there is one.
func next(idle <-chan *bytes.Buffer) *bytes.Buffer {
	select {
	case b := <-idle:
		b.Reset()
		return b
	default:
		return new(bytes.Buffer)
	}
}

func (s *Store) putList(ctx context.Context, l partList, sums []byte) error {
	summary, err := codec.Marshal(l)
	if err != nil {
		return err
	}
	p, err := codec.EncodeContainer(codec.KindOriginal, summary, sums, codec.Default)
	if err != nil {
		return err
	}
	key := layout.OriginalListKey(s.Session, s.Since(), l.Sum)
	err = s.Create(ctx, key, p)
	if errors.Is(err, fs.ErrExist) { // an earlier import may have divided the same bytes into other parts
		if _, perr := s.partsOf(ctx, Original{Sum: l.Sum, Size: l.Size}); perr == nil {
			return nil
		}
	}
	return err
}

// WriteOriginal writes the bytes of an imported file. The hash of a file in one object is checked before its first byte
// is written. Of a file in parts the hash of each part is checked before the part is written, and that of the file at
// the end.
func (s *Store) WriteOriginal(ctx context.Context, sum string, w io.Writer) error {
	key := layout.OriginalKey(s.Session, s.Since(), sum)
	p, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		if lerr := s.writeParts(ctx, sum, w); !errors.Is(lerr, errNoList) {
			return lerr
		}
	}
	if err != nil {
		return err
	}
	return unpackOriginal(key, p, sum, w)
}

// errNoList: there is no list of parts, so it is the object that is missing.
var errNoList = errors.New("not a list of parts")

func (s *Store) writeParts(ctx context.Context, sum string, w io.Writer) error {
	key := layout.OriginalListKey(s.Session, s.Since(), sum)
	p, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return errNoList
	}
	if err != nil {
		return err
	}
	parts, size, err := DecodeOriginalList(p, sum)
	if err != nil {
		return Corrupt(key, 0, err)
	}
	whole := &counted{w: w, sum: sha256.New()}
	for _, part := range parts {
		key := layout.OriginalKey(s.Session, s.Since(), part)
		p, _, err := s.Backend.Get(ctx, key, backend.Range{})
		if err != nil {
			return err
		}
		if err := unpackOriginal(key, p, part, whole); err != nil {
			return err
		}
	}
	if whole.n != size || hex.EncodeToString(whole.sum.Sum(nil)) != sum {
		return Corrupt(key, 0, fmt.Errorf("its parts do not match its checksum: %w", codec.ErrChecksum))
	}
	return nil
}

// counted counts and hashes what it writes.
type counted struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.sum.Write(p[:n])
	return n, err
}

// unpackOriginal writes the content of an object whose hash is sum. It checks the hash first, and writes nothing if the
// object is damaged.
func unpackOriginal(key string, p []byte, sum string, w io.Writer) error {
	if err := CheckOriginal(io.Discard, p, sum); err != nil {
		return Corrupt(key, 0, err)
	}
	if err := codec.Unpack(w, p, onceMax); err != nil {
		return fmt.Errorf("write %s: %w", key, err) // the object was read without an error before: the writer failed
	}
	return nil
}

// CheckOriginal reports whether p holds the bytes that have this hex SHA-256, and writes them to w on the way. It
// takes the memory of a window, whatever p declares (I15).
func CheckOriginal(w io.Writer, p []byte, sum string) error {
	h := sha256.New()
	if err := codec.Unpack(io.MultiWriter(h, w), p, onceMax); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return codec.ErrChecksum
	}
	return nil
}

// DecodeOriginalList returns the hex SHA-256s of a file's parts, in their order, and its size. At most 131,072
// parts.
func DecodeOriginalList(p []byte, sum string) (parts []string, size int64, err error) {
	list, size, err := decodeParts(p, sum)
	for _, part := range list {
		parts = append(parts, part.sum)
	}
	return parts, size, err
}

// storedPart is a part of a file that the store has.
type storedPart struct {
	sum  string // hex SHA-256
	size int64
}

func decodeParts(p []byte, sum string) (parts []storedPart, size int64, err error) {
	summary, body, err := codec.DecodeContainer(p, codec.KindOriginal, listBytes)
	if err != nil {
		return nil, 0, err
	}
	var l partList
	if err := codec.Unmarshal(summary, &l); err != nil {
		return nil, 0, err
	}
	each := sha256.Size
	if l.Part == 0 {
		each = sizedPart
	}
	n, left := len(body)/each, l.Size
	for ; len(body) >= each && l.Sum == sum; body = body[each:] {
		part := storedPart{hex.EncodeToString(body[:sha256.Size]), min(l.Part, left)}
		if l.Part == 0 {
			part.size = int64(min(binary.LittleEndian.Uint64(body[sha256.Size:]), math.MaxInt64))
		}
		if left -= part.size; part.size <= 0 || left < 0 {
			break
		}
		parts = append(parts, part)
	}
	if len(body) > 0 || left != 0 || n == 0 {
		return nil, 0,
			fmt.Errorf("%d parts of %d bytes are not %d bytes of %q: %w", n, l.Part, l.Size, l.Sum, codec.ErrFormat)
	}
	return parts, l.Size, nil
}
