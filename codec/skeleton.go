package codec

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Row is the data of one entry in a skeleton: enough to build the tree and to draw it.
type Row struct {
	ID     string // up to 1 MiB; canonical UUIDs and lower-case hex are stored in half the bytes
	Parent int64  // the parent's ordinal, possibly a later one; NoParent = a root
	// the id that the entry refers to: a label's target, a compaction's first kept, the missing parent of an orphan; ""
	// = none
	Target  string
	Type    string // entry type, up to 1 MiB
	Role    string // role of a message, "" = none
	Flags   uint8  // Flag bits
	Size    uint32 // bytes of the stored line, without its newline
	Time    int64  // Unix milliseconds
	Preview string // up to 80 bytes of valid UTF-8, no line feed
}

// AppendPackedID appends the packed form of the row's id to dst, like Skeleton.AppendPackedID. Equal ids have equal
// packed forms, and different ids different ones, except a text that is as long as a packed id and equals one: a match
// has to be confirmed by the id itself.
func (r Row) AppendPackedID(dst []byte) []byte { return appendKeyOf(dst, r.ID) }

const (
	skeletonMagic = "cskl"
	skeletonHead  = 8 // magic, version, flags, reserved
	maxRows       = 1 << 20
	previewMax    = 80

	// Skeleton flags: which parts are compressed.
	columnsPacked  = 1
	previewsPacked = 2
)

// The columns of a skeleton, in the order in which they are stored.
const (
	colParent = iota // zigzag of (own ordinal - parent's ordinal); 0 = a root
	colKind          // index into the table of type and role
	colFlags
	colSize
	colTime
	colIDCode
	numColumns
)

// maxWidths bounds the bytes a row of each column: 26 together.
var maxWidths = [numColumns]int{colParent: 8, colKind: 4, colFlags: 1, colSize: 4, colTime: 8, colIDCode: 1}

// EncodeSkeleton packs the rows of consecutive entries, the first of which has the ordinal first.
// At most 1,048,576 rows; limits on a row's fields are ErrLimit, contradictions ErrFormat.
func EncodeSkeleton(first uint64, rows []Row) ([]byte, error) {
	if len(rows) > maxRows || first > 1<<61 {
		return nil, fmt.Errorf("encode skeleton: %d rows from %d, at most %d are allowed: %w", len(rows), first,
			maxRows, ErrLimit)
	}
	for i := range rows {
		if err := checkRow(first+uint64(i), &rows[i]); err != nil {
			return nil, fmt.Errorf("encode skeleton: entry %d: %w", first+uint64(i), err)
		}
	}
	table, kinds := makeKinds(rows)
	ids, codes := makeIDs(rows)
	targets, targetCount := makeTargets(rows)
	previews := makePreviews(rows)
	columns := [numColumns]column{
		colParent: makeColumn(len(rows), func(i int) uint64 { return parentCode(first+uint64(i), rows[i].Parent) }),
		colKind:   makeColumn(len(rows), func(i int) uint64 { return uint64(kinds[i]) }),
		colFlags:  makeColumn(len(rows), func(i int) uint64 { return uint64(rows[i].Flags) }),
		colSize:   makeColumn(len(rows), func(i int) uint64 { return uint64(rows[i].Size) }),
		colTime:   makeColumn(len(rows), func(i int) uint64 { return uint64(rows[i].Time) }),
		colIDCode: makeColumn(len(rows), func(i int) uint64 { return uint64(codes[i]) }),
	}
	var raw []byte
	for i := range columns {
		raw = append(raw, columns[i].data...)
	}
	packed, flags := raw, byte(0)
	if z := Compress(nil, raw, Default); worthPacking(len(z), len(raw)) {
		packed, flags = z, columnsPacked
	}
	packedPreviews := previews
	if z := Compress(nil, previews, Default); worthPacking(len(z), len(previews)) {
		packedPreviews, flags = z, flags|previewsPacked
	}

	p := append([]byte(skeletonMagic), version, 0, flags, 0)
	for _, n := range []uint64{
		first, uint64(len(rows)), uint64(len(table)), uint64(len(packed)), uint64(len(ids)),
		targetCount, uint64(len(targets)), uint64(len(previews)), uint64(len(packedPreviews)),
	} {
		p = binary.AppendUvarint(p, n)
	}
	for i := range columns {
		p = columns[i].appendSpec(p)
	}
	for _, part := range [][]byte{table, packed, ids, targets, packedPreviews} {
		p = append(p, part...)
	}
	return appendChecksum(p, 0), nil
}

// worthPacking requires that compression saves an eighth of a part: an uncompressed part needs no memory of its own
// when it is read.
func worthPacking(packed, raw int) bool { return packed < raw-raw/8 }

// checkRow refuses a row that a decoder would refuse or change.
func checkRow(ordinal uint64, r *Row) error {
	switch {
	case r.Parent < NoParent || r.Parent == int64(ordinal):
		return fmt.Errorf("parent %d: %w", r.Parent, ErrFormat)
	case len(r.Preview) > previewMax:
		return fmt.Errorf("preview of %d bytes, at most %d are allowed: %w", len(r.Preview), previewMax, ErrLimit)
	case !utf8.ValidString(r.Preview) || strings.IndexByte(r.Preview, '\n') >= 0:
		return fmt.Errorf("preview is not one line of UTF-8: %w", ErrFormat)
	}
	for _, f := range []struct{ name, value string }{
		{"id", r.ID},
		{"target", r.Target},
		{"type", r.Type},
		{"role", r.Role},
	} {
		if len(f.value) > MaxLen {
			return fmt.Errorf("%s of %d bytes, at most %d are allowed: %w", f.name, len(f.value), MaxLen, ErrLimit)
		}
	}
	return nil
}

func parentCode(ordinal uint64, parent int64) uint64 {
	if parent == NoParent {
		return 0
	}
	return zigzag(int64(ordinal) - parent)
}

// makeKinds builds the table of (type, role) in the order of first use, and the index of every row.
func makeKinds(rows []Row) (table []byte, index []int) {
	seen := map[[2]string]int{}
	index = make([]int, len(rows))
	for i := range rows {
		pair := [2]string{rows[i].Type, rows[i].Role}
		k, ok := seen[pair]
		if !ok {
			k = len(seen)
			seen[pair] = k
			for _, s := range pair {
				table = append(binary.AppendUvarint(table, uint64(len(s))), s...)
			}
		}
		index[i] = k
	}
	return table, index
}

func makeIDs(rows []Row) (ids, codes []byte) {
	codes = make([]byte, len(rows))
	for i := range rows {
		ids, codes[i] = packID(ids, rows[i].ID, rows[i].Time, true)
	}
	return ids, codes
}

// makeTargets encodes the few rows with a target: two columns, the row and the end of its id, then for each the code
// and the payload of the id.
func makeTargets(rows []Row) (part []byte, count uint64) {
	var at, ends []uint64
	var ids []byte
	for i := range rows {
		if rows[i].Target == "" {
			continue
		}
		mark := len(ids)
		var code byte
		ids, code = packID(append(ids, 0), rows[i].Target, 0, false)
		ids[mark] = code
		at, ends = append(at, uint64(i)), append(ends, uint64(len(ids)))
	}
	if len(at) == 0 {
		return nil, 0
	}
	rowCol := makeColumn(len(at), func(i int) uint64 { return at[i] })
	endCol := makeColumn(len(at), func(i int) uint64 { return ends[i] })
	part = endCol.appendSpec(rowCol.appendSpec(part))
	part = append(part, rowCol.data...)
	part = append(part, endCol.data...)
	return append(part, ids...), uint64(len(at))
}

// makePreviews joins the previews, each ended by a line feed; empty if all are empty.
func makePreviews(rows []Row) []byte {
	var p []byte
	for i := range rows {
		p = append(append(p, rows[i].Preview...), '\n')
	}
	if len(p) == len(rows) {
		return nil
	}
	return p
}
