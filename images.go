package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// imagesMax bounds the images that a handle keeps in memory, in bytes; those not stored yet are beside it.
const imagesMax = 16 << 20

// images are the large images that left their lines.
type images struct {
	mu      sync.Mutex
	unsaved map[string][]byte // to be stored before the commit of the entry that refers to them
	kept    map[string][]byte
	size    int
}

// hold keeps blobs until save has stored them.
func (im *images) hold(blobs []transcript.Blob) {
	im.mu.Lock()
	defer im.mu.Unlock()
	for _, b := range blobs {
		if im.unsaved == nil {
			im.unsaved = map[string][]byte{}
		}
		im.unsaved[b.Sum] = b.Data
	}
}

// save stores the images of entries and items that are about to be committed.
func (im *images) save(ctx context.Context, s *Session, list []*pending, items []transcript.Item) error {
	var sums []string
	for _, p := range list {
		for _, b := range p.blobs {
			sums = append(sums, b.Sum)
		}
	}
	for _, it := range items {
		for _, ref := range transcript.BlobRefs(it.Message) {
			sums = append(sums, ref.Sum)
		}
	}
	slices.Sort(sums)
	var todo []transcript.Blob
	im.mu.Lock()
	for _, sum := range slices.Compact(sums) {
		if data, ok := im.unsaved[sum]; ok {
			todo = append(todo, transcript.Blob{Sum: sum, Data: data})
		}
	}
	im.mu.Unlock()
	return each(ctx, len(todo), func(i int) error {
		if _, err := s.j.PutBlob(ctx, todo[i].Data); err != nil {
			return fmt.Errorf("store an image: %w", err)
		}
		im.mu.Lock()
		defer im.mu.Unlock()
		delete(im.unsaved, todo[i].Sum)
		im.keep(todo[i].Sum, todo[i].Data)
		return nil
	})
}

// keep remembers an image; im.mu is held.
func (im *images) keep(sum string, data []byte) {
	if im.kept == nil || im.size+len(data) > imagesMax {
		im.kept, im.size = map[string][]byte{}, 0
	}
	if _, ok := im.kept[sum]; !ok && len(data) <= imagesMax {
		im.kept[sum] = data
		im.size += len(data)
	}
}

func (im *images) get(ctx context.Context, s *Session, st *journal.State, sum string) ([]byte, error) {
	im.mu.Lock()
	data, ok := im.unsaved[sum]
	if !ok {
		data, ok = im.kept[sum]
	}
	im.mu.Unlock()
	if ok {
		return data, nil
	}
	data, err := s.j.GetBlob(ctx, st, sum)
	if err != nil {
		return nil, err
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.keep(sum, data)
	return data, nil
}

// refMark occurs in every stored line that Internalise would change.
var refMark = []byte("coppice-blob:")

// line puts the images of one stored line back. One that is gone is fs.ErrNotExist.
func (im *images) line(ctx context.Context, s *Session, st *journal.State, stored []byte) ([]byte, error) {
	if !bytes.Contains(stored, refMark) {
		return stored, nil
	}
	line, gone, err := im.internalise(ctx, s, st, stored)
	if err == nil && len(gone) > 0 {
		err = fmt.Errorf("image %s of the session: %w", gone[0], fs.ErrNotExist)
	}
	return line, err
}

// internalise reads the images that a stored line refers to, in parallel, and puts them back; gone are
// those that do not exist or fail their checksum.
func (im *images) internalise(ctx context.Context, s *Session, st *journal.State, stored []byte) (line []byte, gone []string, err error) {
	refs := transcript.BlobRefs(stored)
	data := make([][]byte, len(refs))
	err = each(ctx, len(refs), func(i int) error {
		var err error
		data[i], err = im.get(ctx, s, st, refs[i].Sum)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, journal.ErrCorrupt) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	line, gone = transcript.Internalise(stored, func(sum string) ([]byte, bool) {
		for i := range refs {
			if refs[i].Sum == sum && data[i] != nil {
				return data[i], true
			}
		}
		return nil, false
	})
	return line, gone, nil
}

// putBack makes the context the caller's own: messages become copies, with their images.
func (im *images) putBack(ctx context.Context, s *Session, c *transcript.Context) error {
	var st *journal.State
	s.look(func(w *work) { st = w.st })
	marked := map[int]json.RawMessage{}
	gone := make([][]string, len(c.Messages))
	var at []int
	for i, m := range c.Messages {
		if bytes.Contains(m.Raw, refMark) {
			at = append(at, i)
		} else {
			c.Messages[i].Raw = bytes.Clone(m.Raw)
		}
	}
	var mu sync.Mutex
	err := each(ctx, len(at), func(k int) error {
		raw, missing, err := im.internalise(ctx, s, st, c.Messages[at[k]].Raw)
		mu.Lock()
		defer mu.Unlock()
		marked[at[k]], gone[at[k]] = bytes.Clone(raw), missing
		return err
	})
	if err != nil {
		return err
	}
	for _, i := range at {
		c.Messages[i].Raw = marked[i]
		for _, sum := range gone[i] {
			c.Diagnostics = append(c.Diagnostics, transcript.Diagnostic{
				Entry: c.Messages[i].Entry, Kind: "missing-image", Detail: "image " + sum + " is gone: its reference stays",
			})
		}
	}
	return nil
}
