package backend

import (
	"fmt"
	"strings"
)

// Limits of a key. S3 accepts 1,024 bytes and common file systems 255 a name; the rest is room for a prefix that the
// store's owner chose.
const (
	maxKeyBytes       = 900
	maxComponentBytes = 255
)

// ValidKey reports whether key may name an object: components of 1 to 255 bytes out of [A-Za-z0-9._-] with "/" between
// them. No component starts or ends with ".", and a key has at most 900 bytes. Names that start with a dot are reserved
// for drivers (locks, temporary files), so they never collide with a key, and "." and ".." cannot be written. The error
// is an *Error around ErrKey, outcome NotApplied.
//
// The caller must ensure two more rules: a key is never a folder of another key ("a" and "a/b"), and keys never differ
// in case alone. Some stores do not distinguish those.
func ValidKey(key string) error {
	reason := keyFault(key)
	if reason == "" {
		return nil
	}
	return &Error{Op: "key", Key: key, Outcome: NotApplied, Err: fmt.Errorf("%w: %s", ErrKey, reason)}
}

func keyFault(key string) string {
	if key == "" {
		return "empty"
	}
	if len(key) > maxKeyBytes {
		return fmt.Sprintf("%d bytes, the limit is %d", len(key), maxKeyBytes)
	}
	for component := range strings.SplitSeq(key, "/") {
		if reason := componentFault(component); reason != "" {
			return reason
		}
	}
	return ""
}

func componentFault(c string) string {
	if c == "" {
		return "empty component"
	}
	if len(c) > maxComponentBytes {
		return fmt.Sprintf("component of %d bytes, the limit is %d", len(c), maxComponentBytes)
	}
	if c[0] == '.' || c[len(c)-1] == '.' {
		return "component starts or ends with a dot"
	}
	for i := 0; i < len(c); i++ {
		if !keyByte(c[i]) {
			return fmt.Sprintf("byte %#02x at %d of a component", c[i], i)
		}
	}
	return ""
}

func keyByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		b == '.' || b == '_' || b == '-'
}
