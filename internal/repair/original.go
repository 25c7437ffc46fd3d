package repair

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// Imported are the entries of an imported file as the import stored them: those with which the session begins.
type Imported interface {
	Len() int
	ID(i int) string           // of entry i; "" = it is not known
	Raw(i int) ([]byte, error) // the stored line of entry i; nil = it is not known
	Ends(i int) bool           // a commit of an import of the whole file ends with entry i
	Header() []byte            // the session header line; nil = there is none
	Close() error
}

// Reread reads an imported file again. open may be called more than once. image gets every image that left its line.
type Reread func(
	open func() (io.ReadCloser, error), image func(sum string, data []byte) error,
) (Imported, error)

// origin is the imported file, read again where a repair first needs it.
type origin struct {
	asked bool
	sum   string            // hex SHA-256 of it
	file  Imported          // nil = there is none, or it is not what the session was imported from
	blobs map[string][]byte // images of it that the session lacks, at most imagesMost bytes
	bytes int               // of them
}

// imagesMost bounds the images of an imported file that are held until they are stored again, in bytes.
const imagesMost = 512 << 20

// imported returns the imported file's entries; nil where there are none to be had. An original that is damaged, or
// that is read otherwise than when it was imported, is left out: that is no error.
func (r *repair) imported(ctx context.Context) (Imported, error) {
	if r.origin.asked || r.again == nil {
		return r.origin.file, nil
	}
	r.origin = origin{asked: true, blobs: map[string][]byte{}}
	for _, sum := range r.candidates() {
		file, err := r.readOriginal(ctx, sum)
		if err != nil {
			return nil, err
		}
		if file == nil {
			continue
		}
		fits, err := r.fitsLog(ctx, file)
		if err != nil || fits {
			r.origin.file, r.origin.sum = file, sum
			return file, err
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// file is the imported file of a session of which the commit line that named it is lost; "" = none.
func (r *repair) file(ctx context.Context) (string, error) {
	lists := len(r.s.Inventory.Lists)
	if list := r.candidates(); len(r.originals) > 0 || lists == 1 || lists == 0 && len(list) == 1 {
		return list[0], nil
	}
	_, err := r.imported(ctx)
	return r.origin.sum, err
}

// originalsTried bounds how many imported files are read again.
const originalsTried = 8

// candidates are the imported files that may be the session's: those that something names, else all that are there.
func (r *repair) candidates() []string {
	list := slices.Concat(r.originals, slices.Sorted(maps.Keys(r.s.Inventory.Lists)),
		slices.Sorted(maps.Keys(r.s.Inventory.Originals)))
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(sum string) bool {
		dup := seen[sum]
		seen[sum] = true
		return dup
	})
	return list[:min(len(list), originalsTried)]
}

// readOriginal reads an imported file again; nil where it is damaged or cannot be read as a session.
func (r *repair) readOriginal(ctx context.Context, sum string) (file Imported, err error) {
	tmp, err := os.CreateTemp("", "coppice-repair-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	werr := r.store.WriteOriginal(ctx, sum, tmp)
	if err := tmp.Close(); err != nil {
		return nil, err
	}
	switch {
	case check.Unreadable(werr):
		return nil, nil
	case werr != nil:
		return nil, werr
	}
	open := func() (io.ReadCloser, error) { return os.Open(tmp.Name()) }
	file, rerr := r.again(open, func(sum string, data []byte) error {
		_, there := r.s.Inventory.Blobs[sum]
		if there && !r.bad[layout.BlobKey(r.cfg.Session, r.cfg.Since, sum)] || r.origin.bytes+len(data) > imagesMost {
			return nil
		}
		if _, twice := r.origin.blobs[sum]; !twice {
			r.origin.blobs[sum], r.origin.bytes = bytes.Clone(data), r.origin.bytes+len(data)
		}
		return nil
	})
	if rerr != nil {
		return nil, errors.Join(ctx.Err()) // it is no session file that is read today
	}
	return file, nil
}

// fitsLog reports whether the intact part of the log begins with the entries of a file.
func (r *repair) fitsLog(ctx context.Context, file Imported) (bool, error) {
	for i := range r.s.Parts {
		p := &r.s.Parts[i]
		if !p.Intact || p.First < p.Seq || p.First-p.Seq >= uint64(file.Len()) {
			continue // each commit line has an ordinal, so that so many entries are before it
		}
		raw, _, err := check.ReadSegment(ctx, r.cfg.Backend, r.cfg.Session, p.Seg)
		if err != nil {
			return false, err
		}
		c, err := segment.Read(raw, p.Seg)
		if err != nil {
			return false, err
		}
		k := int(p.First - p.Seq)
		for _, l := range c.Lines {
			if l.Commit {
				continue
			}
			if k == file.Len() {
				break
			}
			want, err := file.Raw(k)
			if err != nil {
				return false, err
			}
			if want != nil && !isLost(l.Raw) && !bytes.Equal(want, l.Raw) {
				return false, nil
			}
			k++
		}
	}
	return true, nil
}

// recall fills the lost entries of a part from the imported file, if the session begins with it. It returns the part's
// commits, with the places of the import's commit lines where nothing else knows them.
func (r *repair) recall(ctx context.Context, d *Damaged) ([]Commit, error) {
	list := d.Commits()
	if r.again == nil || d.First < d.Seq || !lacks(list) {
		return list, nil
	}
	file, err := r.imported(ctx)
	if err != nil || file == nil {
		return list, err
	}
	from := int(min(d.First-d.Seq, uint64(file.Len())))
	guess := *d
	guess.Marks = guess.predict(file, from)
	for _, list := range [][]Commit{guess.Commits(), list} {
		filled, ok, err := fill(list, file, from)
		if err != nil {
			return nil, err
		}
		if ok && d.fits(filled) {
			return filled, nil
		}
	}
	return list, nil
}

func lacks(list []Commit) bool {
	for i := range list {
		for k := range list[i].Entries {
			if e := &list[i].Entries[k]; e.Raw == nil || !e.sure {
				return true
			}
		}
	}
	return false
}

// fill returns the commits with the entries of the file that they lack or of which no checksum is known; false where
// they contradict the file.
func fill(list []Commit, file Imported, at int) ([]Commit, bool, error) {
	out := slices.Clone(list)
	for i := range out {
		c := &out[i]
		c.Entries = slices.Clone(c.Entries)
		switch {
		case at < file.Len() && len(c.Entries) > 0:
			c.Reason = state.ReasonImport
		case c.Seq == 0 && len(c.Entries) == 0:
			c.Reason = state.ReasonCreate
		}
		for k := range c.Entries {
			if at == file.Len() {
				return out, true, nil
			}
			e := &c.Entries[k]
			raw, err := file.Raw(at)
			if err != nil {
				return nil, false, err
			}
			id := file.ID(at)
			at++
			switch {
			case raw == nil || isLost(e.Raw):
				continue
			case e.sure && !bytes.Equal(e.Raw, raw), e.Raw == nil && e.ID != "" && e.ID != id:
				return nil, false, nil
			case e.sure:
				continue
			}
			h, err := segment.Entry(e.Ord, raw)
			if err != nil {
				return nil, false, nil
			}
			*e = Entry{Ord: e.Ord, Raw: raw, ID: h.ID, From: h.ParentID, sure: true}
		}
	}
	return out, true, nil
}

// predict returns the marks with those of the commit lines that an import of the file makes: the one that creates the
// session, one after each chunk of lines, and what fills the rest of a segment. from is the number of the file's entry
// with which the part begins.
func (d *Damaged) predict(file Imported, from int) map[uint64]bool {
	marks := maps.Clone(d.Marks)
	if d.End == 0 {
		return marks
	}
	slots := d.place()
	ended := false // a segment begins after a commit line
	for ord, k := d.First, from; ord < d.End && k <= file.Len(); ord++ {
		commit, said := marks[ord]
		switch l := slots[ord]; {
		case l != nil:
			commit = l.Record != nil
		case said:
		case d.Bodies[ord] != nil || d.IDs[ord] != "":
			commit = false
		default:
			commit = ord == 0 || ended || k == file.Len()
		}
		marks[ord] = commit
		if ended = false; !commit && k < file.Len() {
			ended = file.Ends(k)
			k++
		} else if !commit {
			break
		}
	}
	return marks
}

// isLost reports whether a line is the stand-in of an earlier repair.
func isLost(line []byte) bool {
	return bytes.Contains(line, []byte(`"customType":"`+segment.LostType+`"`))
}
