package coppice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// imagesMax bounds the images that a handle keeps in memory, in bytes; those that are not stored yet do not count.
const imagesMax = 16 << 20

// images are the images of one handle. Safe for concurrent use.
type images struct {
	j    *journal.Journal
	mu   sync.Mutex
	kept map[string][]byte
	size int
}

// store stores those of the images with these sums that are not stored yet.
func (im *images) store(ctx context.Context, sums []string) error {
	for _, sum := range sums {
		if data, ok := im.j.HeldBlob(sum); ok {
			im.mu.Lock()
			im.keep(sum, data)
			im.mu.Unlock()
		}
	}
	return im.j.StoreBlobs(ctx, sums)
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

// get returns an image by its SHA-256.
func (im *images) get(ctx context.Context, st *state.State, sum string) ([]byte, error) {
	im.mu.Lock()
	data, ok := im.kept[sum]
	im.mu.Unlock()
	if ok {
		return data, nil
	}
	data, err := im.j.GetBlob(ctx, st, sum)
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

// refsKey is the key of a context whose reads leave images as they are stored.
type refsKey struct{}

// ImageRefs returns a context for reads of entries (Page, Path, Entries, Originals, Entry, Find) that leave the images
// which are stored apart as they are stored: the base64 text is coppice-blob:sha256:HEX:BYTES, of which Blob has the
// bytes; other text that begins so has =: after the colon. Nothing of the images is read, and one that is gone does no
// harm.
func ImageRefs(ctx context.Context) context.Context { return context.WithValue(ctx, refsKey{}, true) }

// Blob returns the bytes of an image of an entry by their SHA-256, 64 lower-case hex digits: one request, or none if
// the checkpoint or the handle holds it. Images are stored apart from their entries if their base64 has more than 32
// KiB. One that is not stored is fs.ErrNotExist; one that is not intact is ErrCorrupt.
func (s *Session) Blob(ctx context.Context, sum string) ([]byte, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum) {
		return nil, s.fail("blob", missing("image", sum))
	}
	if err := s.ready(ctx); err != nil {
		return nil, s.fail("blob", err)
	}
	data, err := s.images.get(ctx, s.state(), sum)
	return bytes.Clone(data), s.fail("blob", err)
}

// text returns a stored line as readers get it: with its images, as line puts them back, and with U+FFFD for bytes that
// are not valid UTF-8, which earlier releases stored.
func (im *images) text(ctx context.Context, st *state.State, stored []byte) ([]byte, error) {
	line, err := im.line(ctx, st, stored)
	return rawjson.ValidText(line), err
}

// line puts the images of one stored line back, unless the context keeps references. One that is gone is
// fs.ErrNotExist, unless a repair recorded its loss: then its reference stays.
func (im *images) line(ctx context.Context, st *state.State, stored []byte) ([]byte, error) {
	if !bytes.Contains(stored, refMark) || ctx.Value(refsKey{}) != nil {
		return stored, nil
	}
	line, gone, err := im.internalise(ctx, st, stored)
	if err != nil || len(gone) == 0 {
		return line, err
	}
	lost, err := im.recorded(ctx, st)
	if err != nil {
		return line, err
	}
	for _, sum := range gone {
		if !lost[sum] {
			return line, fmt.Errorf("image %s of the session: %w", sum, fs.ErrNotExist)
		}
	}
	return line, nil
}

// recorded returns the images that a repair recorded as lost.
func (im *images) recorded(ctx context.Context, st *state.State) (map[string]bool, error) {
	lost := map[string]bool{}
	for sk, err := range im.j.Skeletons(ctx, st, 0) {
		if err != nil {
			return nil, err
		}
		for i := range sk.Len() {
			if name, ok := strings.CutPrefix(segment.LostObject(sk, i), layout.Blobs); ok {
				_, sum := layout.ParseOwn(name)
				lost[sum] = true
			}
		}
	}
	return lost, nil
}

// internalise reads the images that a stored line refers to, in parallel, and puts them back; gone are
// those that do not exist or fail their checksum.
func (im *images) internalise(
	ctx context.Context, st *state.State, stored []byte,
) (line []byte, gone []string, err error) {
	refs := blob.Refs(stored)
	data := make([][]byte, len(refs))
	err = parallel.Each(ctx, len(refs), func(i int) error {
		var err error
		data[i], err = im.get(ctx, st, refs[i].Sum)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrCorrupt) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	line, gone = blob.Internalise(stored, func(sum string) ([]byte, bool) {
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
func (im *images) putBack(ctx context.Context, st *state.State, out *transcript.Context) error {
	marked := map[int]json.RawMessage{}
	gone := make([][]string, len(out.Messages))
	var at []int
	for i, m := range out.Messages {
		if bytes.Contains(m.Raw, refMark) {
			at = append(at, i)
		} else {
			out.Messages[i].Raw = bytes.Clone(rawjson.ValidText(m.Raw))
		}
	}
	var mu sync.Mutex
	err := parallel.Each(ctx, len(at), func(k int) error {
		raw, missing, err := im.internalise(ctx, st, out.Messages[at[k]].Raw)
		mu.Lock()
		defer mu.Unlock()
		marked[at[k]], gone[at[k]] = bytes.Clone(rawjson.ValidText(raw)), missing
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range out.OpenCalls {
		raw, _, err := im.internalise(ctx, st, c.Arguments)
		if err != nil {
			return err
		}
		out.OpenCalls[i].Arguments = bytes.Clone(rawjson.ValidText(raw))
	}
	for _, i := range at {
		out.Messages[i].Raw = marked[i]
		for _, sum := range gone[i] {
			out.Diagnostics = append(out.Diagnostics, transcript.Diagnostic{
				Entry: out.Messages[i].Entry, Kind: "missing-image", Detail: "image " + sum +
					" is gone: its reference stays",
			})
		}
	}
	return nil
}
