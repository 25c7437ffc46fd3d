package jsonl

// BatchSize is how many bytes of lines make a batch; so many lines do it too.
const (
	BatchSize  = 1 << 18
	batchLines = 1 << 12
)

// Batch is some lines that follow each other, held in memory of their own until it is filled again: what one of
// several workers takes at once.
type Batch struct {
	Lines []Line
	held  []byte
}

// Fill takes the next lines: of at least BatchSize bytes together if there are so many, and of less than that
// and one line. An error of the reader's comes once all lines before it were taken.
func (b *Batch) Fill(r *LineReader) error {
	b.Clear()
	for len(b.held) < BatchSize && len(b.Lines) < batchLines {
		l, err := r.Next()
		if err != nil {
			if len(b.Lines) > 0 {
				return nil
			}
			return err
		}
		l.Bytes = b.Hold(l.Bytes)
		b.Lines = append(b.Lines, l)
	}
	return nil
}

// Clear forgets what the batch holds.
func (b *Batch) Clear() {
	if b.Lines, b.held = b.Lines[:0], b.held[:0]; cap(b.held) > 2*longBatch {
		b.held = nil // a long line's; let go of it
	}
}

// Size is how many bytes the batch holds.
func (b *Batch) Size() int { return len(b.held) }

// Hold copies bytes into the batch's memory.
func (b *Batch) Hold(p []byte) []byte {
	from := len(b.held)
	b.held = append(b.held, p...) // if it moves, what was held before stays where it was
	return b.held[from:len(b.held):len(b.held)]
}
