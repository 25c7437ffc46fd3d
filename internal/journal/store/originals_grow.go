package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// Original is an imported file: its hex SHA-256, and its size in bytes.
type Original struct {
	Sum  string
	Size int64
}

// A file that grows gets small parts. They are merged when there are mergedParts of about one size. So each byte is
// written again at most three times.
const (
	mergedParts = 8       // number of parts of about one size that become one part, with smaller ones among them
	leastPart   = 4 << 10 // bytes; each size is mergedParts times the one before
	wholePart   = 2 << 20 // bytes of a part that is never merged
)

// GrowOriginal stores a file that has grown from was, which is stored, to now. more reads the added bytes. Of the
// stored parts it reads only small ones that it merges. It fails if the lengths of was and more do not add up to that
// of now.
func (s *Store) GrowOriginal(ctx context.Context, was, now Original, more io.Reader) error {
	parts, err := s.partsOf(ctx, was)
	if err != nil {
		return err
	}
	size := was.Size
	for {
		raw := new(bytes.Buffer)
		n, err := io.CopyN(raw, more, s.Part)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the original: %w", err)
		}
		if n > 0 {
			part, err := s.putPart(ctx, raw.Bytes())
			if err != nil {
				return err
			}
			if parts, err = s.merge(ctx, append(parts, part)); err != nil {
				return err
			}
		}
		if size += n; n < s.Part {
			break
		}
	}
	if size != now.Size || len(parts) > partsMost {
		return fmt.Errorf("original of %d bytes instead of %d in %d parts: %w", size, now.Size, len(parts),
			codec.ErrLimit)
	}
	var body []byte
	for _, part := range parts {
		if body, err = hex.AppendDecode(body, []byte(part.sum)); err != nil {
			return err
		}
		body = binary.LittleEndian.AppendUint64(body, uint64(part.size))
	}
	return s.putList(ctx, partList{Sum: now.Sum, Size: now.Size}, body)
}

// partsOf returns the parts of a stored file; a file without a list is one part.
func (s *Store) partsOf(ctx context.Context, o Original) ([]storedPart, error) {
	key := layout.OriginalListKey(s.Session, s.Since(), o.Sum)
	p, _, err := s.Backend.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return []storedPart{{o.Sum, o.Size}}, nil
	}
	if err != nil {
		return nil, err
	}
	parts, size, err := decodeParts(p, o.Sum)
	if err == nil && size != o.Size {
		err = codec.ErrFormat
	}
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return parts, nil
}

func (s *Store) putPart(ctx context.Context, raw []byte) (storedPart, error) {
	sum := sha256.Sum256(raw)
	part := storedPart{hex.EncodeToString(sum[:]), int64(len(raw))}
	key := layout.OriginalKey(s.Session, s.Since(), part.sum)
	return part, s.Create(ctx, key, codec.Compress(nil, raw, codec.Default))
}

// merge replaces the last parts by one if there are mergedParts of about one size among them. Larger parts before them
// stay.
func (s *Store) merge(ctx context.Context, parts []storedPart) ([]storedPart, error) {
	from := len(parts)
	for least, limit := int64(0), int64(leastPart); limit <= wholePart; least, limit = limit, limit*mergedParts {
		alike := 0
		for ; from > 0 && parts[from-1].size < limit; from-- {
			if parts[from-1].size >= least {
				alike++
			}
		}
		if alike >= mergedParts {
			return s.mergeFrom(ctx, parts, from)
		}
	}
	return parts, nil
}

func (s *Store) mergeFrom(ctx context.Context, parts []storedPart, from int) ([]storedPart, error) {
	var raw bytes.Buffer
	for _, part := range parts[from:] {
		key := layout.OriginalKey(s.Session, s.Since(), part.sum)
		p, _, err := s.Backend.Get(ctx, key, backend.Range{})
		if err != nil {
			return nil, err
		}
		if err := unpackOriginal(key, p, part.sum, &raw); err != nil {
			return nil, err
		}
	}
	part, err := s.putPart(ctx, raw.Bytes())
	return append(parts[:from:from], part), err
}
