package transfer

import (
	"errors"
	"iter"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/transcript"
)

// Again are the entries of an imported file in the form in which an import stores them, in order. The zero value is
// empty. Close removes its temporary file. It uses as much memory as an import.
type Again struct {
	header []byte
	ld     loader
	ends   map[int]bool
}

// Reread reads the lines of a file that was imported before. Lines without a Draft.Raw are those that another import
// would convert differently; they keep their index. image is called with each image that is stored outside its line.
func Reread(
	lines iter.Seq2[transcript.Draft, error], memory int64, image func(sum string, data []byte) error,
) (*Again, error) {
	a := &Again{ld: loader{lines: newSpool(memory)}}
	for d, err := range headless(lines, &a.header) {
		if err == nil {
			err = a.take(d, image)
		}
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	parents, _ := transcript.ResolveParents(a.ld.heads)
	a.ends = map[int]bool{}
	for at := 0; at < len(a.ld.heads); {
		at = a.ld.chunk(at, parents)
		a.ends[at-1] = true
	}
	return a, nil
}

func (a *Again) take(d transcript.Draft, image func(sum string, data []byte) error) error {
	if d.Raw == nil {
		a.ld.hold(transcript.Line{})
		return a.ld.lines.add(nil)
	}
	raw, err := d.Line(d.ID, d.Parent, a.ld.dated)
	if err != nil {
		return err
	}
	stored, blobs := blob.Externalise(raw)
	for _, b := range blobs {
		if err := image(b.Sum, b.Data); err != nil {
			return err
		}
	}
	return a.ld.line(stored)
}

// Header returns the session header line without its line feed; nil = the file has none.
func (a *Again) Header() []byte { return a.header }

// Len returns the number of entries.
func (a *Again) Len() int { return len(a.ld.heads) }

// ID returns the id of entry i; "" = unknown.
func (a *Again) ID(i int) string { return a.ld.heads[i].ID }

// Raw returns the stored line of entry i without its line feed; nil = unknown.
func (a *Again) Raw(i int) ([]byte, error) { return a.ld.lines.get(i) }

// Ends reports whether a commit of the import ends with entry i.
func (a *Again) Ends(i int) bool { return a.ends[i] }

// Close releases its resources.
func (a *Again) Close() error { return a.ld.lines.close() }
