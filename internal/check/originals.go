package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// originals checks the bytes that were imported: shallow that all parts of each file are there, deep what each
// object holds. Each is read once.
func (v *verifier) originals(ctx context.Context) error {
	read := map[string]bool{} // as a part of a file
	for _, sum := range sorted(v.inv.Lists) {
		if err := v.parts(ctx, sum, read); err != nil {
			return err
		}
	}
	if !v.deep {
		return nil
	}
	for _, sum := range sorted(v.inv.Originals) {
		if read[sum] {
			continue
		}
		if _, err := v.original(ctx, sum, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// parts checks one list, and marks the parts that it read.
func (v *verifier) parts(ctx context.Context, sum string, read map[string]bool) error {
	key := layout.OriginalListKey(v.id, v.since, sum)
	p, _, err := v.get(ctx, key, backend.Range{})
	if err != nil || p == nil {
		return err
	}
	parts, _, err := store.DecodeOriginalList(p, sum)
	if err != nil {
		v.note(Damaged, key, 0, err, "the list of an imported file's parts cannot be read")
		return nil
	}
	whole, fine := sha256.New(), true
	for _, part := range parts {
		if _, ok := v.inv.Originals[part]; !ok {
			if fine = false; !read[part] && !v.recorded(layout.OriginalKey(v.id, v.since, part)) {
				v.note(Missing, layout.OriginalKey(v.id, v.since, part), 0, errGone,
					"a part of the bytes that were imported")
			}
			read[part] = true
			continue
		}
		if !v.deep || read[part] && !fine {
			continue
		}
		good, err := v.original(ctx, part, whole)
		if err != nil {
			return err
		}
		read[part], fine = true, fine && good
	}
	if v.deep && fine && hex.EncodeToString(whole.Sum(nil)) != sum {
		v.note(Damaged, key, 0, codec.ErrChecksum,
			"the parts in the list are other bytes than those that were imported")
	}
	return nil
}

// original checks one object, and writes what it holds to w.
func (v *verifier) original(ctx context.Context, sum string, w io.Writer) (good bool, err error) {
	key := layout.OriginalKey(v.id, v.since, sum)
	p, _, err := v.get(ctx, key, backend.Range{})
	if err != nil || p == nil {
		return false, err
	}
	if err := store.CheckOriginal(w, p, sum); err != nil {
		v.note(Damaged, key, 0, err, "the imported bytes are not what their name says")
		return false, nil
	}
	return true, nil
}
