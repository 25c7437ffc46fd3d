package listing

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

const (
	headName    = "head"
	blockPrefix = "rows-"

	magic     = "cplist\r\x02"
	headBytes = len(magic) + 4 // bytes of an object before its contents: magic and checksum

	blockRows  = 4096    // maximum number of rows of a block, and of the head
	blockBytes = 4 << 20 // maximum length of a block before its last row, in bytes
)

// head is the object that names the blocks of a catalogue. A row of recent replaces a row with the same name in a
// block.
type head struct {
	taken   int64 // time when the listing began that the catalogue was made from, in ms; 0 = it must not answer
	took    int64 // duration of that listing, in ms
	blocks  []block
	recent  []row
	version string // of the stored object; "" = none
}

// block refers to a stored object with rows, newest first.
type block struct {
	name           string // hex of the first 8 bytes of the SHA-256 of the object
	crc            int64  // checksum in the object
	rows           int    // number of rows
	unread         int    // number of rows without a summary
	newest, oldest int64  // activity of the first and the last row, in ms
}

// count returns an upper bound of the number of sessions: it counts rows that another row replaces too.
func (h *head) count() int {
	n := len(h.recent)
	for _, b := range h.blocks {
		n += b.rows
	}
	return n
}

// made is a block of a new catalogue. p is the object; nil = it is stored already.
type made struct {
	block
	p    []byte
	rows []row
}

// compose returns the next head for the rows of, after the head was. Rows that are in a block of was stay there. The
// others go into the head. If there are more than most of them, or with all, they go into new blocks instead, which
// replace the blocks of the same range of activity. blocks is nil if no block changes.
func compose(was head, of map[string]known, most int, all bool) (next head, blocks []made) {
	var recent []row
	size := 0
	for name, k := range of {
		if k.block == 0 {
			recent = append(recent, row{name, k})
			size += len(name) + len(k.sum) + len(k.log.name) + 64
		}
	}
	slices.SortFunc(recent, newer)
	if !all && len(recent) <= most && size <= blockBytes {
		next.blocks, next.recent = was.blocks, recent
		return next, nil
	}
	buckets := make([]made, len(was.blocks)+1) // buckets[0] has the rows that are newer than all blocks
	for i, b := range was.blocks {
		buckets[i+1].block = b
	}
	for name, k := range of {
		at := int(k.block)
		if at > 0 {
			buckets[at].rows = append(buckets[at].rows, row{name, k})
		}
	}
	whole := make([]bool, len(buckets))
	for i := range buckets {
		whole[i] = len(buckets[i].rows) == buckets[i].block.rows
	}
	for _, r := range recent {
		at := 0
		for at < len(was.blocks) && r.at <= was.blocks[at].newest {
			at++
		}
		buckets[at].rows, whole[at] = append(buckets[at].rows, r), false
	}
	for i := range buckets {
		switch b := &buckets[i]; {
		case whole[i] && i > 0:
			blocks = append(blocks, *b)
		case len(b.rows) > 0:
			slices.SortFunc(b.rows, newer)
			blocks = append(blocks, cut(b.rows, most)...)
		}
	}
	for _, b := range blocks {
		next.blocks = append(next.blocks, b.block)
	}
	return next, blocks
}

// cut splits sorted rows into blocks of about equal size, of at most most rows each.
func cut(rows []row, most int) (blocks []made) {
	for len(rows) > 0 {
		n, p := 0, []byte(nil)
		even := len(rows) / ((len(rows) + most - 1) / most)
		b := made{}
		for n < len(rows) && (n < even || len(rows) < most) && len(p) < blockBytes {
			p = rows[n].append(p)
			if rows[n].sum == nil {
				b.unread++
			}
			n++
		}
		b.p = sealed(p)
		sum := sha256.Sum256(b.p)
		b.name, b.crc, b.block.rows = hex.EncodeToString(sum[:8]), checksum(b.p), n
		b.newest, b.oldest, b.rows = rows[0].at, rows[n-1].at, rows[:n]
		blocks, rows = append(blocks, b), rows[n:]
	}
	return blocks
}

// sealed returns an object with the contents p: magic, checksum, p.
func sealed(p []byte) []byte {
	out := append(make([]byte, 0, headBytes+len(p)), magic...)
	out = binary.LittleEndian.AppendUint32(out, codec.CRC(p))
	return append(out, p...)
}

// checksum returns the checksum that is stored in an object.
func checksum(p []byte) int64 { return int64(binary.LittleEndian.Uint32(p[len(magic):])) }

// opened returns the contents of an object after checking its checksum.
func opened(p []byte) ([]byte, error) {
	if len(p) < headBytes || string(p[:len(magic)]) != magic ||
		binary.LittleEndian.Uint32(p[len(magic):]) != codec.CRC(p[headBytes:]) {
		return nil, fmt.Errorf("%w: no part of a catalogue", codec.ErrFormat)
	}
	return p[headBytes:], nil
}

func (h *head) encode() []byte {
	p := binary.AppendVarint(binary.AppendVarint(nil, h.taken), h.took)
	p = binary.AppendUvarint(p, uint64(len(h.blocks)))
	for _, b := range h.blocks {
		p = appendText(p, b.name)
		for _, n := range [...]int64{b.crc, int64(b.rows), int64(b.unread), b.newest, b.oldest} {
			p = binary.AppendVarint(p, n)
		}
	}
	for i := range h.recent {
		p = h.recent[i].append(p)
	}
	return sealed(p)
}

// decodeHead decodes a head. Its rows share the memory of p.
func decodeHead(p []byte) (h *head, err error) {
	if p, err = opened(p); err != nil {
		return nil, err
	}
	r := reader{p, true}
	h = &head{taken: r.number(), took: r.number()}
	if h.took < 0 || h.took > tookMax {
		return nil, fmt.Errorf("%w: head of a catalogue", codec.ErrFormat)
	}
	n, size := binary.Uvarint(r.p)
	if size <= 0 || n > uint64(len(r.p)) {
		return nil, fmt.Errorf("%w: blocks of a catalogue", codec.ErrFormat)
	}
	r.p = r.p[size:]
	for range n {
		b := block{name: string(r.text())}
		b.crc, b.rows, b.unread = r.number(), int(r.number()), int(r.number())
		b.newest, b.oldest = r.number(), r.number()
		if _, err := hex.DecodeString(b.name); err != nil || len(b.name) != 16 || b.rows < 0 || b.rows > blockRows {
			return nil, fmt.Errorf("%w: block of a catalogue", codec.ErrFormat)
		}
		h.blocks = append(h.blocks, b)
	}
	h.recent, _, err = r.rows(nil)
	return h, err
}

// decodeBlock decodes a block. It returns the rows without those for whose summary chosen returns false, and n, the
// number of all its rows. nil = chosen returns true. The rows share the memory of p.
func decodeBlock(p []byte, chosen func(sum []byte) bool) (rows []row, n int, err error) {
	if p, err = opened(p); err != nil {
		return nil, 0, err
	}
	return (&reader{p, true}).rows(chosen)
}

// append appends the encoding of a row to p: its texts, each after its length, and its numbers as varints.
func (r *row) append(p []byte) []byte {
	p = appendText(p, r.name)
	p = appendText(p, r.checkpoint.version)
	p = appendText(p, r.log.name)
	p = append(binary.AppendUvarint(p, uint64(len(r.sum))), r.sum...)
	for _, n := range [...]int64{
		r.at, r.checkpoint.size, r.checkpoint.time,
		r.log.bytes, int64(r.log.epoch), nano(r.log.written), nano(r.log.changed),
	} {
		p = binary.AppendVarint(p, n)
	}
	return p
}

func appendText(p []byte, text string) []byte {
	return append(binary.AppendUvarint(p, uint64(len(text))), text...)
}

func nano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// reader decodes the fields of an object. ok becomes false at the first field that is cut off.
type reader struct {
	p  []byte
	ok bool
}

func (r *reader) rows(chosen func(sum []byte) bool) (rows []row, n int, err error) {
	for ; len(r.p) > 0 && r.ok; n++ {
		name, version, log, sum := r.text(), r.text(), r.text(), r.text()
		var numbers [7]int64
		for i := range numbers {
			numbers[i] = r.number()
		}
		if chosen != nil && len(sum) > 0 && !chosen(sum) {
			continue
		}
		w := row{name: string(name)}
		if len(sum) > 0 {
			w.sum = sum
		}
		w.at, w.checkpoint = numbers[0], stamp{size: numbers[1], time: numbers[2], version: string(version)}
		w.log = logEnd{
			name: string(log), bytes: numbers[3], epoch: uint64(numbers[4]),
			written: fromNano(numbers[5]), changed: fromNano(numbers[6]),
		}
		rows = append(rows, w)
	}
	if !r.ok || n > blockRows {
		return nil, 0, fmt.Errorf("%w: rows of a catalogue", codec.ErrFormat)
	}
	return rows, n, nil
}

func (r *reader) text() []byte {
	n, size := binary.Uvarint(r.p)
	if size <= 0 || n > uint64(len(r.p)-size) {
		r.p, r.ok = nil, false
		return nil
	}
	text := r.p[size : size+int(n) : size+int(n)]
	r.p = r.p[size+int(n):]
	return text
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.p)
	if size <= 0 {
		r.p, r.ok = nil, false
		return 0
	}
	r.p = r.p[size:]
	return n
}

// same reports whether two rows have equal contents. block and seen do not count.
func (k *known) same(o *known) bool {
	return k.at == o.at && k.checkpoint == o.checkpoint && k.log.same(&o.log) && bytes.Equal(k.sum, o.sum)
}

// same reports whether two ends of a log are equal. A nil o is that of a session without segments.
func (e logEnd) same(o *logEnd) bool {
	if o == nil {
		return e.name == ""
	}
	return e.name == o.name && e.bytes == o.bytes && e.changed.Equal(o.changed) && e.epoch == o.epoch
}

// summed is the JSON encoding of a summary in a row.
type summed struct {
	checkpoint.Head
	ID            string                     `json:",omitempty"`
	Title         string                     `json:",omitempty"`
	Cwd           string                     `json:",omitempty"`
	Parent        string                     `json:",omitempty"`
	Preview       string                     `json:",omitempty"`
	Created       time.Time                  `json:",omitzero"`
	Updated       time.Time                  `json:",omitzero"`
	Entries       uint64                     `json:",omitempty"`
	Bytes         int64                      `json:",omitempty"`
	First         string                     `json:",omitempty"`
	Status        string                     `json:",omitempty"`
	Relation      string                     `json:",omitempty"`
	Source        *checkpoint.Source         `json:",omitempty"`
	Meta          map[string]string          `json:",omitempty"`
	MetaElsewhere bool                       `json:",omitempty"`
	Docs          map[string]json.RawMessage `json:",omitempty"`
	Missing       uint64                     `json:",omitempty"`
	Cause         string                     `json:",omitempty"`
	Internal      bool                       `json:",omitempty"`
	Tombstone     bool                       `json:",omitempty"`
	Snapshot      string                     `json:",omitempty"`
	Tag           string                     `json:",omitempty"`
	Reason        string                     `json:",omitempty"`
	LogName       string                     `json:",omitempty"`
	LogBytes      int64                      `json:",omitempty"`
	Cursor        string                     `json:",omitempty"`
}

// encodeSum returns the encoding of a summary in a row. Without whole it only has the fields that listings filter by:
// in an object store the texts would stay in the catalogue after the session is deleted.
func encodeSum(sum *checkpoint.Summary, whole bool) []byte {
	s := summed(*sum)
	if !whole {
		s = summed{
			ID: sum.ID, Cwd: sum.Cwd, Parent: sum.Parent, Meta: sum.Meta,
			Updated: sum.Updated, Tombstone: sum.Tombstone,
		}
	}
	p, _ := json.Marshal(s) // cannot fail: texts, numbers, and JSON that was decoded
	return p
}

func (k *known) summary() (sum checkpoint.Summary, ok bool) {
	if k.sum == nil {
		return sum, false
	}
	var s summed
	ok = json.Unmarshal(k.sum, &s) == nil
	return checkpoint.Summary(s), ok
}

// hints returns texts that occur in the JSON of every summary that o selects, longest first. Searching for them is
// faster than decoding the summary.
func (o *Options) hints() (all [][]byte) {
	quoted := func(text string) []byte {
		p, _ := json.Marshal(text)
		return p
	}
	for key, value := range o.Meta {
		all = append(all, slices.Concat(quoted(key), []byte(":"), quoted(value)))
	}
	if o.Cwd != "" && len(o.Cwd) < 500 { // a longer one may be truncated in the summary
		all = append(all, append([]byte(`"Cwd":`), quoted(o.Cwd)...))
	}
	if o.Parent != "" {
		all = append(all, append([]byte(`"Parent":`), quoted(o.Parent)...))
	}
	slices.SortFunc(all, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// unread returns an upper bound of the number of rows without a summary.
func (h *head) unread() (n int) {
	for _, r := range h.recent {
		if r.sum == nil {
			n++
		}
	}
	for _, b := range h.blocks {
		n += b.unread
	}
	return n
}

// maybe reports whether the session of a row may be one that the listing selects: true if its summary is not known.
func (l *lister) maybe(r *row) bool {
	if r.at == 0 && r.sum != nil { // deleted
		return false
	}
	if r.sum == nil || !l.o.chooses() {
		return true
	}
	if !l.hinted(r.sum) {
		return false
	}
	sum, ok := r.summary()
	return !ok || l.o.wants(&sum)
}

// hinted reports whether the JSON of a summary contains all hints of the listing.
func (l *lister) hinted(sum []byte) bool {
	return !slices.ContainsFunc(l.hints, func(h []byte) bool { return !bytes.Contains(sum, h) })
}
