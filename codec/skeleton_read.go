package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"weak"
)

// Skeleton is the decoded skeleton of consecutive entries: a view of the bytes it was decoded from and, if those were
// compressed, of one additional buffer. Nothing is allocated for a row. Rows are numbered from 0; an index out of range
// panics like that of a slice. Safe for concurrent use.
type Skeleton struct {
	first   uint64
	n       int
	columns [numColumns]column
	kinds   []kind
	ids     []byte
	idSize  int      // bytes of every id, 0 = they differ and idMarks has their positions
	idMarks []uint32 // offset of every 16th id

	targetRows, targetEnds column
	targetIDs              []byte

	previews       []byte // as stored
	previewsRaw    int
	previewsPacked bool
	text           atomic.Pointer[weak.Pointer[previewText]]
	unreadable     atomic.Bool // decoding of the previews failed
}

// kind is one pair of the table.
type kind struct{ typ, role string }

// idStride is the distance of idMarks: four bytes for 16 rows, and at most 15 short steps.
const idStride = 16

// DecodeSkeleton decodes a skeleton. The result refers to p, which must not change. In addition it allocates at most 26
// bytes a row for the columns, 0.25 for ids of differing forms, and 32 for each pair of type and role; the number of
// rows is at most the length of p. Previews are decoded on first use: at most 81 bytes a row, released when memory is
// short.
func DecodeSkeleton(p []byte) (*Skeleton, error) {
	body, err := splitChecksum("skeleton", p)
	if err != nil {
		return nil, err
	}
	if len(body) < skeletonHead || string(body[:4]) != skeletonMagic {
		return nil, fmt.Errorf("skeleton: not a skeleton: %w", ErrFormat)
	}
	if err := checkVersion("skeleton", binary.LittleEndian.Uint16(body[4:])); err != nil {
		return nil, err
	}
	flags := body[6]
	c := &cursor{What: "skeleton", P: body[skeletonHead:]}
	if flags&^(columnsPacked|previewsPacked) != 0 || body[7] != 0 {
		c.Fail("unknown flags %02x%02x", flags, body[7])
	}
	all := uint64(len(body))
	s := &Skeleton{first: c.Uvarint("first ordinal", 1<<61)}
	s.n = int(c.Uvarint("rows", min(all, maxRows)))
	tableLen, columnsLen, idsLen := c.Uvarint("table", all), c.Uvarint("columns", all), c.Uvarint("ids", all)
	targetCount, targetsLen := c.Uvarint("targets", uint64(s.n)), c.Uvarint("target bytes", all)
	s.previewsRaw = int(c.Uvarint("previews", uint64(s.n)*(previewMax+1)))
	previewsLen := c.Uvarint("stored previews", all)
	for i := range s.columns {
		if s.columns[i].readSpec(c, s.n); s.columns[i].width > maxWidths[i] {
			c.Fail("column %d of %d bytes a row", i, s.columns[i].width)
		}
	}
	s.readKinds(c.What, c.Take(tableLen), c)
	columns := c.Take(columnsLen)
	s.ids = c.Take(idsLen)
	targets := c.Take(targetsLen)
	s.previews, s.previewsPacked = c.Take(previewsLen), flags&previewsPacked != 0
	if len(c.P) != 0 {
		c.Fail("%d bytes too many", len(c.P))
	}
	if !s.previewsPacked && len(s.previews) != s.previewsRaw {
		c.Fail("previews of %d bytes instead of %d", len(s.previews), s.previewsRaw)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	if err := s.openColumns(columns, flags&columnsPacked != 0); err != nil {
		return nil, err
	}
	if err := s.checkIDs(); err != nil {
		return nil, err
	}
	return s, s.openTargets(targets, int(targetCount))
}

// readKinds reads the table of type and role.
func (s *Skeleton) readKinds(what string, table []byte, outer *cursor) {
	c := &cursor{What: what, P: table}
	count := 0
	for len(c.P) > 0 && count <= s.n {
		c.Take(c.Uvarint("type", MaxLen))
		c.Take(c.Uvarint("role", MaxLen))
		count++
	}
	if count > s.n || c.Err != nil {
		outer.Fail("unreadable table of types")
		return
	}
	s.kinds = make([]kind, count)
	c.P = table
	for i := range s.kinds {
		s.kinds[i].typ = knownString(c.Take(c.Uvarint("type", MaxLen)))
		s.kinds[i].role = knownString(c.Take(c.Uvarint("role", MaxLen)))
	}
}

// openColumns maps the columns to their bytes and checks what readers rely on.
func (s *Skeleton) openColumns(p []byte, packed bool) error {
	var size uint64
	for i := range s.columns {
		size += s.columns[i].size()
	}
	if packed {
		raw, err := Decompress(nil, p, int(size))
		if err != nil {
			return fmt.Errorf("skeleton: columns: %w", err)
		}
		p = raw
	}
	if uint64(len(p)) != size {
		return fmt.Errorf("skeleton: %d bytes of columns instead of %d: %w", len(p), size, ErrFormat)
	}
	for i := range s.columns {
		c := &s.columns[i]
		c.data, p = p[:c.size():c.size()], p[c.size():]
	}
	return s.checkRows()
}

// checkRows checks the two columns that contain references. A column that is too narrow for a reference out of range is
// not read.
func (s *Skeleton) checkRows() error {
	kinds, parents := &s.columns[colKind], &s.columns[colParent]
	if kinds.limit() >= uint64(len(s.kinds)) {
		for i := range s.n {
			if k := kinds.at(i); k >= uint64(len(s.kinds)) {
				return fmt.Errorf("skeleton: row %d is of kind %d of %d: %w", i, k, len(s.kinds), ErrFormat)
			}
		}
	}
	if parents.limit()/2 > s.first {
		for i := range s.n {
			if d := unzigzag(parents.at(i)); d > int64(s.first)+int64(i) || d < -1<<62 {
				return fmt.Errorf("skeleton: row %d has an impossible parent: %w", i, ErrFormat)
			}
		}
	}
	return nil
}

// checkIDs checks the ids: all codes known, all bytes used. It sets the marks.
func (s *Skeleton) checkIDs() error {
	codes := &s.columns[colIDCode]
	if size, _, ok := idSize(byte(codes.base), s.ids); ok && codes.width == 0 && codes.base != Long {
		s.idSize = size
		if len(s.ids) != size*s.n || codes.base > 0xff {
			return fmt.Errorf("skeleton: %d bytes of ids for %d rows: %w", len(s.ids), s.n, ErrFormat)
		}
		return nil
	}
	if s.n > 0 {
		s.idMarks = make([]uint32, (s.n+idStride-1)/idStride)
	}
	at := 0
	for i := range s.n {
		if i%idStride == 0 {
			s.idMarks[i/idStride] = uint32(at)
		}
		code := codes.at(i)
		size, _, ok := idSize(byte(code), s.ids[at:])
		if !ok || code > 0xff {
			return fmt.Errorf("skeleton: row %d has no readable id: %w", i, ErrFormat)
		}
		at += size
	}
	if at != len(s.ids) {
		return fmt.Errorf("skeleton: %d bytes after the last id: %w", len(s.ids)-at, ErrFormat)
	}
	return nil
}

// openTargets maps the two columns of targets to their bytes and checks that rows and ends ascend.
func (s *Skeleton) openTargets(p []byte, count int) error {
	c := &cursor{What: "skeleton: targets", P: p}
	if count > 0 {
		s.targetRows.readSpec(c, count)
		s.targetEnds.readSpec(c, count)
		s.targetRows.data = c.Take(s.targetRows.size())
		s.targetEnds.data = c.Take(s.targetEnds.size())
		s.targetIDs = c.P
	}
	if c.Err == nil && count == 0 && len(p) != 0 {
		c.Fail("%d bytes too many", len(p))
	}
	if c.Err != nil {
		return c.Err
	}
	lastRow, lastEnd := int64(-1), uint64(0)
	for i := range count {
		row, end := s.targetRows.at(i), s.targetEnds.at(i)
		if row >= uint64(s.n) || int64(row) <= lastRow || end <= lastEnd || end > uint64(len(s.targetIDs)) {
			c.Fail("row %d ends at %d", row, end)
			return c.Err
		}
		id := s.targetIDs[lastEnd:end]
		if size, _, ok := idSize(id[0], id[1:]); !ok || size != len(id)-1 || id[0] == Timed {
			c.Fail("row %d has no readable target", row)
			return c.Err
		}
		lastRow, lastEnd = int64(row), end
	}
	if lastEnd != uint64(len(s.targetIDs)) {
		c.Fail("%d bytes too many", uint64(len(s.targetIDs))-lastEnd)
	}
	return c.Err
}

// previewText is the decoded column of previews: all of them, and the end of each.
type previewText struct {
	text string
	ends []uint32
}

// previewColumn returns the decoded previews. They are held weakly: a garbage collection may drop them while they are
// not in use, so that a tree of a million entries does not keep all of the text in memory.
func (s *Skeleton) previewColumn() (*previewText, error) {
	if w := s.text.Load(); w != nil {
		if t := w.Value(); t != nil {
			return t, nil
		}
	}
	raw, err := s.rawPreviews()
	if err != nil {
		s.unreadable.Store(true) // not tried again for every row
		return nil, err
	}
	t := &previewText{text: string(raw)}
	if len(raw) > 0 {
		t.ends = make([]uint32, 0, s.n)
		for at := 0; at < len(raw); at++ { // the last byte is a line feed
			at += bytes.IndexByte(raw[at:], '\n')
			t.ends = append(t.ends, uint32(at))
		}
	}
	w := weak.Make(t)
	s.text.Store(&w)
	return t, nil
}

// rawPreviews decompresses the previews and checks that every row has one, or none has.
func (s *Skeleton) rawPreviews() ([]byte, error) {
	raw := s.previews
	if s.previewsPacked {
		var err error
		if raw, err = Decompress(nil, s.previews, s.previewsRaw); err != nil {
			return nil, fmt.Errorf("skeleton: previews: %w", err)
		}
	}
	lines := bytes.Count(raw, []byte{'\n'})
	if len(raw) != s.previewsRaw || len(raw) > 0 && (lines != s.n || raw[len(raw)-1] != '\n') {
		return nil, fmt.Errorf("skeleton: %d previews in %d bytes for %d rows: %w", lines, len(raw), s.n, ErrFormat)
	}
	return raw, nil
}
