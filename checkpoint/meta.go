package checkpoint

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// Limits of a session's metadata.
const (
	MaxMeta     = 4 << 10 // bytes as JSON
	MaxMetaKeys = 64
	MaxMetaKey  = 64 // bytes of a key

	maxMetaChange = 4 * MaxMetaKeys // keys of a MetaChange: two concurrent writers may exceed MaxMetaKeys
)

// MetaHold is the key of the reason of a legal hold. Only a commit of the reason "hold" sets and removes it; in a
// header line, and in the metadata that callers set, it is not valid.
const MetaHold = "coppice.hold"

// MaxHold bounds the reason of a hold, in bytes.
const MaxHold = 1 << 10

// Held reports whether the session is held. Of a summary that was read alone (MetaElsewhere) it does not know.
func (s Summary) Held() bool {
	_, held := s.Meta[MetaHold]
	return held
}

const metaKeyChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// ValidMetaKey reports whether a key of metadata is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'.
func ValidMetaKey(key string) bool {
	return key != "" && len(key) <= MaxMetaKey &&
		!strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(metaKeyChars, r) })
}

// MetaChange is the change of a session's metadata since its header line: values by key, nil = removed.
type MetaChange map[string]*string

// Valid reports whether a change can be stored.
func (c MetaChange) Valid() bool {
	size := 0
	for key, value := range c {
		if !ValidMetaKey(key) || value != nil && !utf8.ValidString(*value) {
			return false
		}
		if size += len(key) + 8; value != nil {
			size += len(*value)
		}
	}
	return len(c) <= maxMetaChange && size <= 4*MaxMeta
}

// Then returns the combined change of c and then d.
func (c MetaChange) Then(d MetaChange) MetaChange {
	sum := make(MetaChange, len(c)+len(d))
	maps.Copy(sum, c)
	maps.Copy(sum, d)
	return sum
}

// On returns c without the keys that equal the metadata of a header line.
func (c MetaChange) On(header map[string]string) MetaChange {
	own := MetaChange{}
	for key, value := range c {
		if was, ok := header[key]; ok != (value != nil) || ok && was != *value {
			own[key] = value
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own
}

// Apply returns the metadata after the change; nil if it is empty.
func (c MetaChange) Apply(meta map[string]string) map[string]string {
	if len(c) == 0 {
		return meta
	}
	after := make(map[string]string, len(meta)+len(c))
	maps.Copy(after, meta)
	for key, value := range c {
		if value == nil {
			delete(after, key)
		} else {
			after[key] = *value
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

// append adds the change as a JSON object, keys ascending.
func (c MetaChange) append(b []byte) []byte {
	b = append(b, '{')
	for _, key := range slices.Sorted(maps.Keys(c)) {
		b = append(canon.AppendString(canon.Comma(b), key), ':')
		if value := c[key]; value != nil {
			b = canon.AppendString(b, *value)
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, '}')
}

// readMetaChange reads the output of append after the opening brace.
func readMetaChange(c *canon.Cursor) MetaChange {
	change, last := MetaChange{}, ""
	for c.OK {
		key := c.Name()
		c.Want(":")
		if key <= last || len(change) == maxMetaChange {
			c.Fail()
		}
		if last = key; c.Has("null") {
			change[key] = nil
		} else {
			value := c.Text()
			change[key] = &value
		}
		if c.Has("}") {
			if !change.Valid() {
				c.Fail()
			}
			return change
		}
		c.Want(",")
	}
	return nil
}

// encodeMeta encodes a change for the body of an object; nil if there is none.
func encodeMeta(c MetaChange) []byte {
	if len(c) == 0 {
		return nil
	}
	return c.append(nil)
}

func decodeMeta(p []byte) (MetaChange, error) {
	if len(p) == 0 {
		return nil, nil
	}
	c := canon.Read(p, 0)
	c.Want("{")
	change := readMetaChange(c)
	if !c.Done() {
		return nil, canon.Malformed("change of the metadata: unexpected bytes at %d of %d", c.At, len(p))
	}
	return change, nil
}
