package codec

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Ref names one immutable object, a sealed segment or an index object, with its range and the checksum that verifies it
// (invariant I3). As msgpack it is an array of its fields in order.
type Ref struct {
	First    uint64   // ordinal of the first entry
	Count    uint32   // entries
	FirstSeq uint64   // seq of the first commit in or after it
	RawBytes int64    // lines, uncompressed
	Bytes    int64    // the object
	Epoch    uint64   // of the writer: part of the name
	Rnd      string   // 16 lower-case hex digits: part of the name
	Sum      [16]byte // first half of the SHA-256 of the object
}

const (
	refFields = 8
	maxRnd    = 255
	maxRefs   = 1 << 16
)

// Seal sets Bytes and Sum to those of the object p.
func (r *Ref) Seal(p []byte) { r.Bytes, r.Sum = int64(len(p)), sum16(p) }

// Verify checks that p is the object that r was sealed with.
func (r *Ref) Verify(p []byte) error {
	if int64(len(p)) != r.Bytes {
		return fmt.Errorf("object of %d bytes instead of %d: %w", len(p), r.Bytes, ErrFormat)
	}
	if sum16(p) != r.Sum {
		return fmt.Errorf("object of %d bytes: sha256 is not that of its reference: %w", len(p), ErrChecksum)
	}
	return nil
}

func sum16(p []byte) [16]byte {
	s := sha256.Sum256(p)
	return [16]byte(s[:16])
}

// EncodeMsgpack writes r as an array of its fields.
func (r Ref) EncodeMsgpack(e *msgpack.Encoder) error {
	return errors.Join(
		e.EncodeArrayLen(refFields),
		e.EncodeUint(r.First), e.EncodeUint(uint64(r.Count)), e.EncodeUint(r.FirstSeq),
		e.EncodeInt(r.RawBytes), e.EncodeInt(r.Bytes),
		e.EncodeUint(r.Epoch), e.EncodeString(r.Rnd), e.EncodeBytes(r.Sum[:]))
}

// DecodeMsgpack decodes the output of EncodeMsgpack.
func (r *Ref) DecodeMsgpack(d *msgpack.Decoder) error {
	n, err := d.DecodeArrayLen()
	if err != nil || n != refFields {
		return fmt.Errorf("reference of %d fields instead of %d: %w", n, refFields, errors.Join(err, ErrFormat))
	}
	var sum []byte
	for _, field := range []any{&r.First, &r.Count, &r.FirstSeq, &r.RawBytes, &r.Bytes, &r.Epoch, &r.Rnd, &sum} {
		if err := d.Decode(field); err != nil {
			return fmt.Errorf("reference: %w", err)
		}
	}
	if copy(r.Sum[:], sum) != len(r.Sum) || len(sum) != len(r.Sum) || len(r.Rnd) > maxRnd || r.RawBytes < 0 ||
		r.Bytes < 0 {
		return fmt.Errorf("reference: impossible field: %w", ErrFormat)
	}
	return nil
}

// EncodeIndex folds references, and the skeletons of the segments that they name, into one index
// object: a container of KindIndex. There are as many skeletons as references, or none (references
// to index objects). At most 65,536 references.
func EncodeIndex(refs []Ref, skeletons [][]byte) ([]byte, error) {
	if len(refs) > maxRefs || len(skeletons) != 0 && len(skeletons) != len(refs) {
		return nil, fmt.Errorf("encode index: %d references with %d skeletons, at most %d are allowed: %w", len(refs),
			len(skeletons), maxRefs, ErrLimit)
	}
	packed, err := Marshal(refs)
	if err != nil {
		return nil, fmt.Errorf("encode index: %w", err)
	}
	body := append(binary.AppendUvarint(nil, uint64(len(packed))), packed...)
	body = binary.AppendUvarint(body, uint64(len(skeletons)))
	for _, s := range skeletons {
		body = binary.AppendUvarint(body, uint64(len(s)))
	}
	for _, s := range skeletons {
		body = append(body, s...)
	}
	if len(body) > maxIndex {
		return nil, fmt.Errorf("encode index: %d bytes, at most %d are allowed: %w", len(body), maxIndex, ErrLimit)
	}
	frame := Compress(nil, body, Default)
	if !worthPacking(len(frame), len(body)) {
		frame = appendStored(nil, body)
	}
	return packContainer(KindIndex, nil, frame)
}

// DecodeIndex reads an index object. The skeletons, views of one buffer that it allocates, are not
// decoded yet: DecodeSkeleton does that. The buffer is at most 64 MiB; references and views take
// at most 128 bytes for each reference, of which there are at most 65,536.
func DecodeIndex(p []byte) (refs []Ref, skeletons [][]byte, err error) {
	_, body, err := DecodeContainer(p, KindIndex, maxIndex)
	if err != nil {
		return nil, nil, err
	}
	c := &cursor{What: "index", P: body}
	packed := c.Take(c.Uvarint("references", uint64(len(body))))
	if c.Err != nil {
		return nil, nil, c.Err
	}
	if err := Unmarshal(packed, &refs); err != nil {
		return nil, nil, fmt.Errorf("index: references: %w", err)
	}
	count := c.Uvarint("skeletons", uint64(len(refs)))
	if len(refs) > maxRefs || count != 0 && count != uint64(len(refs)) {
		c.Fail("%d skeletons for %d references", count, len(refs))
	}
	var sizes []uint64
	if c.Err == nil {
		sizes = make([]uint64, count)
		skeletons = make([][]byte, count)
	}
	for i := range sizes {
		sizes[i] = c.Uvarint("skeleton", uint64(len(body)))
	}
	for i, n := range sizes {
		skeletons[i] = c.Take(n)
	}
	if len(c.P) != 0 {
		c.Fail("%d bytes too many", len(c.P))
	}
	if c.Err != nil {
		return nil, nil, c.Err
	}
	return refs, skeletons, nil
}
