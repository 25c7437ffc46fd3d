package checkpoint

import (
	"bytes"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
)

// Prelude is the line that opens a segment (in the first one it follows the session header). It is an entry of type
// custom for other readers, has no ordinal, and contains the key and chain that verify the following commit lines.
type Prelude struct {
	ID       string // of the line
	Time     time.Time
	Format   int // PreludeFormat; see ParsePrelude
	Session  string
	First    uint64 // ordinal of the first entry after it
	FirstSeq uint64 // seq of the first commit after it
	Epoch    uint64
	Key      uint64 // random; key of the commit lines of this segment

	PrevName  string // the previous segment; "" = none, or unknown
	PrevBytes int64  // its length when this one was created
	PrevSelf  uint32 // Self of its last commit line then: the start of the chain of this segment
}

const preludeCRC = `,"crc":"`

// Line writes p, without a newline. Format is always PreludeFormat. Errors wrap codec.ErrFormat.
func (p Prelude) Line() ([]byte, error) {
	if p.ID == "" || p.Session == "" || p.PrevBytes < 0 {
		return nil, canon.Malformed("prelude %q of session %q: empty id or negative length", p.ID, p.Session)
	}
	b := append(make([]byte, 0, 512), linePrefix...)
	b = canon.AppendString(b, p.ID)
	b, err := canon.AppendTime(append(b, `,"parentId":null,"timestamp":"`...), p.Time)
	if err != nil {
		return nil, err
	}
	b = append(b, `","customType":"coppice.segment","data":{"format":`...)
	b = strconv.AppendInt(b, PreludeFormat, 10)
	b = canon.AppendString(append(b, `,"session":`...), p.Session)
	b = strconv.AppendUint(append(b, `,"first":`...), p.First, 10)
	b = strconv.AppendUint(append(b, `,"firstSeq":`...), p.FirstSeq, 10)
	b = strconv.AppendUint(append(b, `,"epoch":`...), p.Epoch, 10)
	b = canon.AppendHex(append(b, `,"key":"`...), p.Key, 16)
	b = append(b, `","prev":`...)
	if p.PrevName == "" && p.PrevBytes == 0 && p.PrevSelf == 0 {
		b = append(b, "null"...)
	} else {
		b = canon.AppendString(append(b, `{"name":`...), p.PrevName)
		b = strconv.AppendInt(append(b, `,"bytes":`...), p.PrevBytes, 10)
		b = canon.AppendHex(append(b, `,"self":"`...), uint64(p.PrevSelf), 8)
		b = append(b, `"}`...)
	}
	crc := codec.CRC(b)
	return append(canon.AppendHex(append(b, preludeCRC...), uint64(crc), 8), `"}}`...), nil
}

// ParsePrelude parses a line that Line wrote, and no other: if any bit is flipped it returns false. For an intact
// prelude of a later format it also returns false, with only Format set: too new to read, not damaged.
func ParsePrelude(line []byte) (Prelude, bool) {
	const tailBytes = len(preludeCRC) + 8 + len(`"}}`)
	if !bytes.HasPrefix(line, []byte(linePrefix)) || len(line) < len(linePrefix)+tailBytes {
		return Prelude{}, false
	}
	body := line[:len(line)-tailBytes]
	tail := canon.Read(line, len(body))
	tail.Want(preludeCRC)
	crc := uint32(tail.Hex(8))
	tail.Want(`"}}`)
	if !tail.Done() || codec.CRC(body) != crc {
		return Prelude{}, false
	}
	var p Prelude
	c := canon.Read(body, len(linePrefix))
	p.ID = c.Name()
	c.Want(`,"parentId":null,"timestamp":"`)
	p.Time = c.Time()
	c.Want(`","customType":"coppice.segment","data":{"format":`)
	if p.Format = c.Count(); c.OK && p.Format > PreludeFormat {
		return Prelude{Format: p.Format}, false
	}
	c.Want(`,"session":`)
	p.Session = c.Name()
	c.Want(`,"first":`)
	p.First = c.Uint()
	c.Want(`,"firstSeq":`)
	p.FirstSeq = c.Uint()
	c.Want(`,"epoch":`)
	p.Epoch = c.Uint()
	c.Want(`,"key":"`)
	p.Key = c.Hex(16)
	c.Want(`","prev":`)
	if !c.Has("null") {
		c.Want(`{"name":`)
		p.PrevName = c.Text()
		c.Want(`,"bytes":`)
		p.PrevBytes = c.Size()
		c.Want(`,"self":"`)
		p.PrevSelf = uint32(c.Hex(8))
		c.Want(`"}`)
		if p.PrevName == "" && p.PrevBytes == 0 && p.PrevSelf == 0 {
			c.Fail() // it is null
		}
	}
	if !c.Done() || p.Format != PreludeFormat {
		return Prelude{}, false
	}
	return p, true
}
