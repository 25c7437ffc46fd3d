package checkpoint

import (
	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// ParseRecord parses a line that AppendLine wrote, without its newline. ours is false for every other line: another
// shape, a flipped bit, a commit line of another session (its key differs), or no commit line at all; most of those are
// rejected without parsing. An error is returned only with ours: Self verifies and yet the fields cannot be read, as in
// a line of a later format; it wraps codec.ErrFormat. The raw parts of the result alias line.
func ParseRecord(line []byte, key uint64) (r Record, ours bool, err error) {
	if !isLine(line) {
		return Record{}, false, nil
	}
	body := line[:len(line)-selfBytes]
	tail := canon.Read(line, len(body)+len(selfField))
	r.Self = uint32(tail.Hex(8))
	tail.Want(`"}}`)
	c := readHead(body, &r)
	if !tail.Done() || !c.OK || keyed(key, body) != r.Self {
		return Record{}, false, nil
	}
	readRecord(c, &r)
	if !c.Done() {
		return Record{}, true, canon.Malformed("commit %s: unexpected bytes at %d of the line", r.ID, c.At)
	}
	if err := r.check(); err != nil {
		return Record{}, true, err
	}
	return r, true, nil
}

// readHead reads the part before the data of a commit line.
func readHead(line []byte, r *Record) *canon.Cursor {
	c := canon.Read(line, len(linePrefix))
	r.ID = c.Name()
	c.Want(`,"parentId":`)
	r.ParentID = c.ID()
	c.Want(`,"timestamp":"`)
	r.Time = c.Time()
	c.Want(`","customType":"coppice.commit","data":{`)
	return c
}

// readRecord reads the data of a commit line up to crc.
func readRecord(c *canon.Cursor, r *Record) {
	c.Want(`"seq":`)
	r.Seq = c.Uint()
	c.Want(`,"parent":`)
	r.Parent = c.ID()
	c.Want(`,"epoch":`)
	r.Epoch = c.Uint()
	c.Want(`,"writer":`)
	r.Writer = c.Text()
	c.Want(`,"reason":`)
	r.Reason = c.Text()
	c.Want(`,"head":`)
	r.Head = c.ID()
	c.Want(`,"headOrd":`)
	r.HeadOrd = c.Int()
	c.Want(`,"branch":`)
	r.Branch = c.Text()
	c.Want(`,"entries":`)
	r.Entries = c.Count()
	if c.Has(`,"parents":[`) {
		r.Parents = readParents(c)
	}
	for _, f := range optionalTexts(r) {
		if c.Has(f.Name) {
			*f.Value = c.Name()
		}
	}
	r.Claim = c.Has(`,"claim":true`)
	r.Erase = c.Has(eraseField)
	if o, ok := readOutline(c); ok {
		r.Outline = &o
	}
	if c.Has(sourceField) {
		r.Source = readSource(c)
	}
	if c.Has(namesField) {
		r.Names = readRenames(c)
	}
	if c.Has(`,"base":{"branches":[`) {
		r.Base = readBase(c)
	}
	if c.Has(`,"doc":`) {
		r.Doc = c.Value(canon.EnvelopeDepth)
	} else if c.Has(`,"patch":`) {
		r.Patch = c.Value(canon.EnvelopeDepth)
		r.Sorted = c.Has(`,"sorted":true`)
	}
	c.Want(`,"docCRC":"`)
	r.DocCRC = uint32(c.Hex(8))
	c.Want(`","len":`)
	r.Len = c.Size()
	c.Want(`,"synced":`)
	r.Synced = c.Size()
	c.Want(`,"crc":"`)
	r.CRC = uint32(c.Hex(8))
	c.Want(`"`)
}

func readParents(c *canon.Cursor) (parents []ParentDelta) {
	for c.OK {
		var p ParentDelta
		c.Want(`[`)
		p.Index = c.Count()
		c.Want(`,`)
		p.Delta = c.Int()
		c.Want(`]`)
		parents = append(parents, p)
		if c.Has(`]`) {
			return parents
		}
		c.Want(`,`)
	}
	return nil
}

func readRenames(c *canon.Cursor) (names []Rename) {
	for c.OK && len(names) < MaxBranches {
		var n Rename
		c.Want(`[`)
		n.From = c.Name()
		c.Want(`,`)
		n.To = c.ID()
		c.Want(`]`)
		names = append(names, n)
		if c.Has(`]`) {
			return names
		}
		c.Want(`,`)
	}
	c.Fail()
	return nil
}

func readBase(c *canon.Cursor) *Base {
	b := &Base{}
	for !c.Has(`]`) && c.OK {
		if len(b.Branches) > 0 {
			c.Want(`,`)
		}
		if len(b.Branches) == MaxBranches {
			c.Fail()
		}
		var br BranchRef
		c.Want(`[`)
		br.Name = c.Name()
		c.Want(`,`)
		br.Head = c.ID()
		c.Want(`,`)
		br.Ord = c.Int()
		c.Want(`]`)
		b.Branches = append(b.Branches, br)
	}
	c.Want(`,"title":`)
	b.Title = c.Text()
	c.Want(`,"cwd":`)
	b.Cwd = c.Text()
	c.Want(`,"parent":`)
	b.Parent = c.Text()
	c.Want(`,"created":"`)
	b.Created = c.Time()
	c.Want(`","entries":`)
	b.Entries = c.Uint()
	c.Want(`,"bytes":`)
	b.Bytes = c.Size()
	c.Want(`,"headOrd":`)
	b.HeadOrd = c.Int()
	c.Want(`,"self":"`)
	b.Self = uint32(c.Hex(8))
	c.Want(`","original":`)
	b.Original = c.Text()
	c.Want(`,"claimed":`)
	b.Claimed = c.Uint()
	readBaseOptions(c, b)
	c.Want(`}`)
	return b
}

// readBaseOptions reads the fields that were added to a base later, each absent if it is empty.
func readBaseOptions(c *canon.Cursor, b *Base) {
	if c.Has(`,"first":`) {
		if b.First = c.Text(); b.First == "" {
			c.Fail()
		}
	}
	if o, ok := readOutline(c); ok {
		if b.Outline = o; o == (Outline{}) {
			c.Fail()
		}
	}
	if c.Has(`,"profile":`) {
		if b.Profile = c.Name(); b.Profile == "" {
			c.Fail()
		}
	}
	if c.Has(`,"contextBytes":`) {
		if b.MaxBytes = c.Int(); b.MaxBytes == 0 || b.MaxBytes < -1 {
			c.Fail()
		}
	}
	if c.Has(`,"meta":{`) {
		b.Meta = readMetaChange(c)
	}
	if c.Has(sourceField) {
		b.Source = readSource(c)
	}
	if c.Has(sinceField) {
		if b.Since = c.Uint(); b.Since == 0 {
			c.Fail()
		}
	}
}

func readOutline(c *canon.Cursor) (o Outline, ok bool) {
	if !c.Has(`,"outline":{"preview":`) {
		return o, false
	}
	o.Preview = c.Text()
	c.Want(`,"status":`)
	o.Status = c.Text()
	c.Want(`}`)
	return o, true
}

// RecordSeq reads the seq of a line that was verified as a commit line before, without its key.
func RecordSeq(line []byte) (seq uint64, ok bool) {
	if !isLine(line) {
		return 0, false
	}
	var r Record
	c := readHead(line, &r)
	c.Want(`"seq":`)
	return c.Uint(), c.OK
}

// VerifiedRecord parses a line that was verified as a commit line before, without its key.
func VerifiedRecord(line []byte) (Record, error) {
	var r Record
	if !isLine(line) {
		return r, canon.Malformed("a line that is not a commit line")
	}
	c := readHead(line[:len(line)-selfBytes], &r)
	readRecord(c, &r)
	if !c.Done() {
		return r, canon.Malformed("commit %s: unexpected bytes at %d of the line", r.ID, c.At)
	}
	return r, r.check()
}
