package langgraph

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// The types of extensions that Python's JsonPlusSerializer writes (langgraph-checkpoint 4.2.0, serde/jsonplus.py).
const (
	extArg     = 0 // module, name, argument
	extArgs    = 1 // module, name, arguments
	extKwargs  = 2 // module, name, keyword arguments
	extMethod  = 3 // module, name, argument, method
	extModelV1 = 4 // module, name, fields
	extModelV2 = 5 // module, name, fields, method
	extDelta   = 7 // a value
)

const (
	maxDepth = 100      // of values in each other
	maxJSON  = 32 << 20 // bytes of a decoded value
)

var (
	errEnds  = errors.New("it ends in the middle of a value")
	errDeep  = fmt.Errorf("it is more than %d levels deep", maxDepth)
	errLarge = fmt.Errorf("it has more than %d bytes as JSON", maxJSON)
)

// decoder makes JSON of MessagePack. An object of Python is a constructor with lc 2, the form in which that serializer
// itself writes objects as JSON; nothing is imported or run. What has no meaning in JSON is kept in such a form too,
// and counted.
type decoder struct {
	in     []byte
	depth  int
	opaque map[string]int // by the name of the type
}

// decode returns the JSON of a whole value.
func (d *decoder) decode(in []byte) ([]byte, error) {
	outer := d.in
	defer func() { d.in = outer }()
	d.in = in
	out, err := d.value(nil)
	if err == nil && len(d.in) > 0 {
		err = fmt.Errorf("%d bytes follow the value", len(d.in))
	}
	return out, err
}

// take returns the next bytes.
func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.in)) {
		return nil, errEnds
	}
	p := d.in[:n]
	d.in = d.in[n:]
	return p, nil
}

// number returns the next integer of a number of bytes, most significant first.
func (d *decoder) number(size int) (n uint64, err error) {
	p, err := d.take(uint64(size))
	for _, c := range p {
		n = n<<8 | uint64(c)
	}
	return n, err
}

// value appends the next value.
func (d *decoder) value(out []byte) ([]byte, error) {
	if d.depth++; d.depth > maxDepth {
		return nil, errDeep
	}
	defer func() { d.depth-- }()
	if len(out) > maxJSON {
		return nil, errLarge
	}
	p, err := d.take(1)
	if err != nil {
		return nil, err
	}
	c := p[0]
	switch {
	case c < 0x80:
		return strconv.AppendInt(out, int64(c), 10), nil
	case c < 0x90:
		return d.object(out, uint64(c&15))
	case c < 0xa0:
		return d.array(out, uint64(c&15))
	case c < 0xc0:
		return d.text(out, uint64(c&31))
	case c >= 0xe0:
		return strconv.AppendInt(out, int64(int8(c)), 10), nil
	case c == 0xc0:
		return append(out, "null"...), nil
	case c == 0xc2:
		return append(out, "false"...), nil
	case c == 0xc3:
		return append(out, "true"...), nil
	case c >= 0xcc && c <= 0xd3:
		return d.integer(out, c)
	case c == 0xca || c == 0xcb:
		return d.float(out, c)
	case c >= 0xd4 && c <= 0xd8:
		return d.ext(out, 1<<(c-0xd4))
	case c == 0xc1:
		return nil, errors.New("it has the byte 0xc1, which begins no value")
	}
	return d.sized(out, c)
}

// sized appends a value whose length follows its first byte.
func (d *decoder) sized(out []byte, c byte) ([]byte, error) {
	size := map[byte]int{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4,
		0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	}[c]
	n, err := d.number(size)
	switch {
	case err != nil:
		return nil, err
	case c <= 0xc6:
		p, err := d.take(n)
		d.count("bytes")
		return constructor(out, []string{"builtins", "bytes"}, `"fromhex"`, "args",
			rawjson.List([][]byte{rawjson.AppendString(nil, hex.EncodeToString(p))})), err
	case c <= 0xc9:
		return d.ext(out, n)
	case c <= 0xdb:
		return d.text(out, n)
	case c <= 0xdd:
		return d.array(out, n)
	}
	return d.object(out, n)
}

func (d *decoder) integer(out []byte, c byte) ([]byte, error) {
	size := 1 << (c & 3)
	n, err := d.number(size)
	if c < 0xd0 {
		return strconv.AppendUint(out, n, 10), err
	}
	shift := 64 - 8*size
	return strconv.AppendInt(out, int64(n<<shift)>>shift, 10), err
}

func (d *decoder) float(out []byte, c byte) ([]byte, error) {
	bits := 64
	if c == 0xca {
		bits = 32
	}
	n, err := d.number(bits / 8)
	if err != nil {
		return nil, err
	}
	f := math.Float64frombits(n)
	if bits == 32 {
		f = float64(math.Float32frombits(uint32(n)))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.count("float that is no number")
		text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
		return constructor(out, []string{"builtins", "float"}, "", "args", []byte(`["`+text+`"]`)), nil
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0" // as Python writes it
	}
	return append(out, text...), nil
}

func (d *decoder) text(out []byte, n uint64) ([]byte, error) {
	p, err := d.take(n)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(p) {
		d.count("text that is not UTF-8")
	}
	return rawjson.AppendString(out, p), nil
}

func (d *decoder) array(out []byte, n uint64) (_ []byte, err error) {
	if n > uint64(len(d.in)) {
		return nil, errEnds
	}
	out = append(out, '[')
	for k := range n {
		if k > 0 {
			out = append(out, ',')
		}
		if out, err = d.value(out); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// object appends a map. One with keys that are no texts is a constructor of its pairs.
func (d *decoder) object(out []byte, n uint64) (_ []byte, err error) {
	if n > uint64(len(d.in)) {
		return nil, errEnds
	}
	members, pairs, plain := []byte{'{'}, []byte{'['}, true
	for k := range n {
		key, err := d.value(nil)
		if err != nil {
			return nil, err
		}
		val, err := d.value(nil)
		if err != nil {
			return nil, err
		}
		if k > 0 {
			members, pairs = append(members, ','), append(pairs, ',')
		}
		if len(members) > maxJSON {
			return nil, errLarge
		}
		plain = plain && rawjson.IsString(key)
		members = append(append(append(members, key...), ':'), val...)
		pairs = append(append(append(append(append(pairs, '['), key...), ','), val...), ']')
	}
	if plain {
		return append(append(out, members...), '}'), nil
	}
	return constructor(out, []string{"builtins", "dict"}, "", "args", rawjson.List([][]byte{append(pairs, ']')})), nil
}

// ext appends an extension.
func (d *decoder) ext(out []byte, n uint64) ([]byte, error) {
	code, err := d.take(1)
	if err != nil {
		return nil, err
	}
	data, err := d.take(n)
	if err != nil {
		return nil, err
	}
	if code[0] == extDelta {
		val, err := d.decode(data)
		return constructor(out, strings.Split(deltaType, "."), "", "args", rawjson.List([][]byte{val})), err
	}
	if code[0] <= extModelV2 {
		known, err := d.decode(data)
		if err != nil {
			return nil, err
		}
		if made := constructed(out, code[0], known); made != nil {
			return made, nil
		}
	}
	d.count(fmt.Sprintf("extension %d", code[0]))
	return append(out, rawjson.Object("lc", []byte("2"), "type", []byte(`"msgpack"`),
		"ext", strconv.AppendUint(nil, uint64(code[0]), 10),
		"bytes", rawjson.AppendString(nil, base64.StdEncoding.EncodeToString(data)))...), nil
}

// deltaType is the type of a channel that stores differences: its value is a snapshot, or in the writes since.
const deltaType = "langgraph.checkpoint.serde.types._DeltaSnapshot"

// constructed appends the constructor of an extension whose content is a list; nil = it is of another form.
func constructed(out []byte, code byte, list []byte) []byte {
	var part [][]byte
	for m := rawjson.Walk(list); m.Closing == ']' && m.Next(); {
		part = append(part, m.Val)
	}
	if len(part) < 3 || !rawjson.IsString(part[0]) || !rawjson.IsString(part[1]) {
		return nil
	}
	id := append(strings.Split(rawjson.Text(part[0]), "."), rawjson.Text(part[1]))
	switch code {
	case extArg:
		return constructor(out, id, "", "args", rawjson.List(part[2:3]))
	case extArgs:
		return constructor(out, id, "", "args", part[2])
	case extKwargs:
		return constructor(out, id, "", "kwargs", part[2])
	case extMethod:
		if len(part) < 4 {
			return nil
		}
		return constructor(out, id, string(part[3]), "args", rawjson.List(part[2:3]))
	case extModelV1:
		return constructor(out, id, `[null,"construct"]`, "kwargs", part[2])
	}
	return constructor(out, id, `[null,"model_construct"]`, "kwargs", part[2])
}

// constructor appends the JSON of an object of Python. method is JSON; "" = none.
func constructor(out []byte, id []string, method, name string, val []byte) []byte {
	var path [][]byte
	for _, part := range id {
		path = append(path, rawjson.AppendString(nil, part))
	}
	call := []byte(method)
	if method == "" {
		call = nil
	}
	return append(out, rawjson.Object("lc", []byte("2"), "type", []byte(`"constructor"`), "id", rawjson.List(path),
		"method", call, name, val)...)
}

func (d *decoder) count(what string) {
	if d.opaque == nil {
		d.opaque = map[string]int{}
	}
	d.opaque[what]++
}
