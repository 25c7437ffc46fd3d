package repair

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
)

// loss is an object that nothing brings back.
type loss struct {
	name string // key within the session
	how  check.Kind
	torn string // where its bytes are now, within the session; "" = there were none
}

// objects repairs what is not part of the log. Images come back from wherever their bytes are. The damaged bytes of all
// other objects, and of images that are nowhere, move to torn/, and a commit records the loss. The bytes are copied
// first and removed last, so that an interrupted repair can be run again.
func (r *repair) objects(ctx context.Context) error {
	prefix := layout.SessionPrefix(r.cfg.Session)
	var gone []loss
	var remove []string
	done := map[string]bool{}
	for _, p := range r.s.Problems {
		name, within := strings.CutPrefix(p.Object, prefix)
		folder, rest, _ := strings.Cut(name, "/")
		if !p.Kind.Damage() || !within || done[name] {
			continue
		}
		switch folder + "/" {
		case layout.Blobs:
			_, sum := layout.ParseOwn(rest)
			back, err := r.image(ctx, sum, p.Kind)
			if err != nil {
				return err
			}
			if back {
				continue
			}
		case layout.Snapshots:
			if r.logDamaged() && r.witness(p.Object) {
				continue // the repaired log shows whether it is right
			}
		case layout.Originals, layout.Torn:
		default:
			continue
		}
		done[name] = true
		l, err := r.keepAside(ctx, name, p)
		if err != nil {
			return err
		}
		if !r.s.Recorded[name] {
			gone = append(gone, l)
		}
		if l.torn != "" {
			remove = append(remove, p.Object)
		}
	}
	if err := r.record(ctx, gone); err != nil {
		return err
	}
	return r.remove(ctx, remove)
}

// witness reports whether a snapshot is intact by itself.
func (r *repair) witness(key string) bool {
	for _, o := range r.s.Snapshots {
		if key == layout.SessionPrefix(r.cfg.Session)+layout.Snapshots+o.Summary.Snapshot {
			return true
		}
	}
	return false
}

// keepAside copies the bytes of an object that is lost to torn/.
func (r *repair) keepAside(ctx context.Context, name string, p *check.Problem) (loss, error) {
	l := loss{name: name, how: p.Kind}
	raw, _, err := r.cfg.Backend.Get(ctx, p.Object, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.note(check.Lost, p.Object, "%s; it is recorded as lost", p.Detail)
		return l, nil
	case err != nil:
		return l, err
	}
	if err := r.aside(ctx, layout.Segment{Epoch: r.s.Epoch}, raw); err != nil {
		return l, err
	}
	l.torn = r.torn
	r.note(check.Lost, p.Object, "%s; its bytes are moved to torn/, and it is recorded as lost", p.Detail)
	return l, nil
}

// image brings an image back from the checkpoint, a snapshot or the imported file.
func (r *repair) image(ctx context.Context, sum string, how check.Kind) (bool, error) {
	data, err := r.findImage(ctx, sum)
	if err != nil || data == nil {
		return false, err
	}
	key := layout.BlobKey(r.cfg.Session, r.cfg.Since, sum)
	r.note(check.Rebuilt, key, "its bytes are elsewhere in the session: it is written again")
	cond := backend.IfAbsent()
	if how != check.Missing {
		old, info, err := r.cfg.Backend.Get(ctx, key, backend.Range{})
		if err == nil {
			cond = backend.IfMatch(info.Version)
			err = r.aside(ctx, layout.Segment{Epoch: r.s.Epoch}, old)
		}
		if err != nil {
			return false, err
		}
	}
	if _, err := r.cfg.Backend.Put(ctx, key, data, cond); err != nil {
		return false, err
	}
	r.wrote(len(data))
	return true, nil
}

func (r *repair) findImage(ctx context.Context, sum string) ([]byte, error) {
	for _, o := range append(r.s.Snapshots[:len(r.s.Snapshots):len(r.s.Snapshots)], r.s.Object) {
		if o == nil {
			continue
		}
		if data := o.Blobs[sum]; isSum(data, sum) {
			return data, nil
		}
	}
	if _, err := r.imported(ctx); err != nil {
		return nil, err
	}
	if data := r.origin.blobs[sum]; isSum(data, sum) {
		return data, nil
	}
	return nil, nil
}

func isSum(data []byte, sum string) bool {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:]) == sum
}

// record commits what is lost: an entry for each object, which is no part of the conversation. The head stays.
func (r *repair) record(ctx context.Context, gone []loss) (err error) {
	if len(gone) == 0 {
		return nil
	}
	j, err := journal.Open(ctx, r.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close(ctx)) }()
	head := journal.PlaceOf(j.State())
	step := &journal.Step{Reason: reason, Head: &head}
	for _, l := range gone {
		id, now, err := r.store.LineID()
		if err != nil {
			return err
		}
		raw, err := lostObject(l, id, head.ID, now)
		if err != nil {
			return err
		}
		step.Entries = append(step.Entries, &journal.Entry{Raw: raw, ID: id, Parent: head, Aside: true})
	}
	_, err = j.Commit(ctx, step)
	return err
}

// remove takes objects away whose bytes are in torn/ by now.
func (r *repair) remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := r.cfg.Backend.Delete(ctx, key); err != nil {
			return err
		}
		r.rep.Removed++
	}
	return nil
}
