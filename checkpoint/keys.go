package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// MaxKeys is the number of idempotency keys that a session remembers.
const MaxKeys = 1024

// maxKeyBytes bounds their encoding in a checkpoint.
const maxKeyBytes = 16 << 10

// KeyRef locates the commit of an idempotency key. Two keys may share a hash: the commit line has the key itself.
type KeyRef struct {
	Hash uint64 // KeyHash of the key
	Seq  uint64 // of the commit
	Ord  uint64 // ordinal of its line; 0 = unknown
}

// KeyHash returns the first 8 bytes of the key's SHA-256.
func KeyHash(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:8])
}

// AppendKey appends a key, and drops the oldest beyond MaxKeys. The result may share memory with keys, whose own
// elements do not change.
func AppendKey(keys []KeyRef, k KeyRef) []KeyRef {
	if n := len(keys) - MaxKeys + 1; n > 0 {
		keys = keys[n:]
	}
	return append(keys, k)
}

// encodeKeys encodes the newest keys that fit into 16 KiB, oldest first: 8 bytes of hash, then the increments of seq
// and ordinal over the previous key, as varints. nil for no keys.
func encodeKeys(keys []KeyRef) []byte {
	if len(keys) > MaxKeys {
		keys = keys[len(keys)-MaxKeys:]
	}
	for {
		var out []byte
		var seq, ord uint64
		for _, k := range keys {
			out = binary.BigEndian.AppendUint64(out, k.Hash)
			out = binary.AppendUvarint(out, k.Seq-seq)
			out = binary.AppendVarint(out, int64(k.Ord-ord))
			seq, ord = k.Seq, k.Ord
		}
		if len(out) <= maxKeyBytes {
			return out
		}
		keys = keys[(len(out)-maxKeyBytes)/28+1:]
	}
}

// decodeKeys is the inverse of encodeKeys.
func decodeKeys(p []byte) (keys []KeyRef, err error) {
	if err := canon.AtMost("bytes of idempotency keys", len(p), maxKeyBytes); err != nil {
		return nil, err
	}
	var last KeyRef
	for len(p) > 0 {
		if len(p) < 8 || len(keys) == MaxKeys {
			return nil, canon.Malformed("idempotency keys: %d, and %d bytes left", len(keys), len(p))
		}
		k := KeyRef{Hash: binary.BigEndian.Uint64(p)}
		p = p[8:]
		seq, n := binary.Uvarint(p)
		if n <= 0 || n != len(binary.AppendUvarint(nil, seq)) {
			return nil, canon.Malformed("idempotency key %d: no seq", len(keys))
		}
		p = p[n:]
		ord, n := binary.Varint(p)
		if n <= 0 || n != len(binary.AppendVarint(nil, ord)) {
			return nil, canon.Malformed("idempotency key %d: no ordinal", len(keys))
		}
		p = p[n:]
		k.Seq, k.Ord = last.Seq+seq, last.Ord+uint64(ord)
		keys, last = append(keys, k), k
	}
	return slices.Clip(keys), nil
}
