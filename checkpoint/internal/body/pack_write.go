package body

import (
	"encoding/binary"
	"math"
)

// Writer writes one msgpack map field by field, in the bytes that codec.Marshal returns for a struct: it is for data
// that is written in every turn, where reflection costs more than the writing. A method whose name begins with Opt
// leaves out an empty field. The zero Writer only counts; see Begin.
type Writer struct {
	B        []byte
	Fields   int // of the map, so far
	Elements int // declared so far, as codec.Unmarshal counts them
	writes   bool
}

// Begin writes the map's header for the counted fields, and makes w write from here on.
func (w *Writer) Begin(b []byte) {
	n := w.Fields
	*w = Writer{B: b, writes: true, Elements: 2 * n}
	if n < 16 {
		w.B = append(w.B, 0x80|byte(n))
	} else {
		w.B = binary.BigEndian.AppendUint16(append(w.B, 0xde), uint16(n))
	}
}

// key begins a field; false: w is only counting.
func (w *Writer) key(name string) bool {
	w.Fields++
	if w.writes {
		w.B = AppendText(w.B, name)
	}
	return w.writes
}

// Int writes a number.
func (w *Writer) Int(name string, n int64) {
	if w.key(name) {
		w.B = AppendInt(w.B, n)
	}
}

// Uint writes a number.
func (w *Writer) Uint(name string, n uint64) {
	if w.key(name) {
		w.B = AppendUint(w.B, n)
	}
}

// OptInt writes a number that is not 0.
func (w *Writer) OptInt(name string, n int64) {
	if n != 0 {
		w.Int(name, n)
	}
}

// OptUint writes a number that is not 0.
func (w *Writer) OptUint(name string, n uint64) {
	if n != 0 {
		w.Uint(name, n)
	}
}

// Text writes a text.
func (w *Writer) Text(name, s string) {
	if w.key(name) {
		w.B = AppendText(w.B, s)
	}
}

// OptText writes a text that is not empty.
func (w *Writer) OptText(name, s string) {
	if s != "" {
		w.Text(name, s)
	}
}

// OptTrue writes true, or nothing.
func (w *Writer) OptTrue(name string, yes bool) {
	if yes && w.key(name) {
		w.B = append(w.B, 0xc3)
	}
}

// Bytes writes bytes; nil stays nil.
func (w *Writer) Bytes(name string, p []byte) {
	switch {
	case !w.key(name):
	case p == nil:
		w.B = append(w.B, 0xc0)
	default:
		w.B = append(w.appendSize(len(p)), p...)
	}
}

// OptBytes writes bytes, if there are any.
func (w *Writer) OptBytes(name string, p []byte) {
	if len(p) > 0 {
		w.Bytes(name, p)
	}
}

// Open begins bytes of a known size, which the caller appends. false: w is only counting, or there are none.
func (w *Writer) Open(name string, size int) bool {
	if !w.key(name) {
		return false
	}
	if size == 0 {
		w.B = append(w.B, 0xc0)
		return false
	}
	w.B = w.appendSize(size)
	return true
}

// OptOpen is Open for bytes that are left out if there are none.
func (w *Writer) OptOpen(name string, size int) bool { return size > 0 && w.Open(name, size) }

func (w *Writer) appendSize(n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(w.B, 0xc4, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(w.B, 0xc5), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(w.B, 0xc6), uint32(n))
}

// Array begins an array; false: w is only counting.
func (w *Writer) Array(name string, n int) bool {
	if !w.key(name) {
		return false
	}
	w.Elements += n
	w.B = AppendArray(w.B, n)
	return true
}

// OptDifferences writes ordinals as Differences returns them, if there are any.
func (w *Writer) OptDifferences(name string, ords []uint64) {
	if len(ords) == 0 || !w.Array(name, len(ords)) {
		return
	}
	var last uint64
	for _, ord := range ords {
		w.B, last = AppendInt(w.B, int64(ord-last)), ord
	}
}

// OptSizes writes the lengths of lines, if there are any.
func (w *Writer) OptSizes(name string, lines [][]byte) {
	if len(lines) == 0 || !w.Array(name, len(lines)) {
		return
	}
	for _, line := range lines {
		w.B = AppendUint(w.B, uint64(len(line)))
	}
}

// Texts writes an array of texts.
func (w *Writer) Texts(name string, texts ...string) {
	if !w.Array(name, len(texts)) {
		return
	}
	for _, s := range texts {
		w.B = AppendText(w.B, s)
	}
}

// OptTexts writes an array of texts, if there are any.
func (w *Writer) OptTexts(name string, texts []string) {
	if len(texts) > 0 {
		w.Texts(name, texts...)
	}
}

// OptByteLists writes an array of byte strings, if there are any.
func (w *Writer) OptByteLists(name string, list [][]byte) {
	if len(list) == 0 || !w.Array(name, len(list)) {
		return
	}
	for _, p := range list {
		w.B = append(w.appendSize(len(p)), p...)
	}
}

// AppendArray appends the header of an array.
func AppendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

// AppendText appends a text.
func AppendText(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

// AppendUint appends a number in its shortest form.
func AppendUint(b []byte, n uint64) []byte {
	switch {
	case n <= math.MaxInt8:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

// AppendInt appends a number in its shortest form.
func AppendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return AppendUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}
