package codec

import "fmt"

// ErrText is the cause of every *TextError, for errors.Is.
const ErrText formatError = "text is not valid UTF-8"

// TextError reports bytes that should be stored as text and are not valid UTF-8. Nothing was written.
type TextError struct {
	What   string // "state", "body", "message.content", ...: which text
	Offset int64  // of the first byte that is not valid UTF-8
}

func (e *TextError) Error() string {
	return fmt.Sprintf("%s: byte %d is not valid UTF-8", e.What, e.Offset)
}

// Unwrap returns ErrText.
func (e *TextError) Unwrap() error { return ErrText }
