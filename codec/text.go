package codec

import "fmt"

// TextError says that bytes which were to be stored as text are not valid UTF-8. Nothing was written.
type TextError struct {
	What   string // "state", "body", "message.content", ...: which text
	Offset int64  // of the first byte that is not valid UTF-8
}

func (e *TextError) Error() string {
	return fmt.Sprintf("%s: byte %d is not valid UTF-8", e.What, e.Offset)
}
