package layout

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/codec"
)

// ErrID is the cause of every refused session id.
var ErrID = errors.New("invalid session id")

// ErrInput is the cause of what a caller may not say, such as a reason with capital letters, and that has no error of
// its own.
var ErrInput = errors.New("invalid input")

// inputError is an ErrInput whose text is its own.
type inputError struct{ text string }

func (e *inputError) Error() string        { return e.text }
func (e *inputError) Is(target error) bool { return target == ErrInput }

// BadInput returns an ErrInput with a text.
func BadInput(format string, args ...any) error { return &inputError{fmt.Sprintf(format, args...)} }

// MaxEntry bounds one entry, in bytes, without its images.
const MaxEntry = 4 << 20

// TooLarge refuses what is larger than it may be.
func TooLarge(what string, limit, value int) error {
	return &codec.LimitError{What: what, Limit: int64(limit), Value: int64(value)}
}

const (
	idMax        = 128 // bytes of a session id
	componentMax = 255 // bytes of a key's component
)

// ValidID checks a session id: 1 to 128 bytes of [A-Za-z0-9._-], not starting or ending with a dot.
func ValidID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrID)
	case len(id) > idMax:
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrID, len(id), idMax)
	case id[0] == '.' || id[len(id)-1] == '.':
		return fmt.Errorf("%w %q: it starts or ends with a dot", ErrID, id)
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return fmt.Errorf("%w %q: only letters, digits, '.', '_' and '-' are allowed", ErrID, id)
		}
	}
	return nil
}

func idByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == '-'
}

// Escape turns a valid id into a key component without upper case: '_' becomes "__" and 'A' becomes
// "_a". The one form that would pass 255 bytes, 128 bytes of nothing but those, is "_." and the id in
// lower case; "_." occurs in no other form.
func Escape(id string) string {
	var b strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case c == '_':
			b.WriteString("__")
		case c >= 'A' && c <= 'Z':
			b.WriteByte('_')
			b.WriteByte(c - 'A' + 'a')
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() > componentMax {
		return "_." + strings.ToLower(id)
	}
	return b.String()
}

// Unescape returns the id back; false where Escape makes no such name (a foreign object).
func Unescape(name string) (string, bool) {
	var id string
	if rest, ok := strings.CutPrefix(name, "_."); ok {
		id = strings.ToUpper(rest)
	} else {
		var b strings.Builder
		for i := 0; i < len(name); i++ {
			c := name[i]
			if c == '_' {
				i++
				switch {
				case i < len(name) && name[i] == '_':
				case i < len(name) && name[i] >= 'a' && name[i] <= 'z':
					c = name[i] - 'a' + 'A'
				default:
					return "", false
				}
			}
			b.WriteByte(c)
		}
		id = b.String()
	}
	return id, ValidID(id) == nil && Escape(id) == name
}

// Derived returns a UUID of version 8, a hash of its argument.
func Derived(of []byte) string {
	sum := sha256.Sum256(slices.Concat(make([]byte, 16), of)) // in the namespace of the nil UUID
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// MaxApart bounds the sessions that are looked at for one id. Each import of a file whose session cannot grow takes one
// more, and an id that was deleted costs one small read.
const MaxApart = 1024

// Apart returns the id of the kth session of files whose sessions have the same id in their program.
func Apart(id string, k int) string {
	if k == 0 {
		return id
	}
	return Derived([]byte(id + "\x00apart\x00" + strconv.Itoa(k)))
}
