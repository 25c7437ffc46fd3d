package jsonl

// BatchSize is how many bytes of lines make a batch; so many lines do it too.
const (
	BatchSize  = 1 << 18
	batchLines = 1 << 12
)

// Batch is a run of lines in a buffer of its own: the unit of work of a worker. The buffer is valid until the next
// Fill.
type Batch struct {
	Lines []Line
	held  []byte
}

// Fill reads the next lines. Their size is at least BatchSize bytes, or less at the end, and exceeds it by at most one
// line. An error of the reader is returned after all lines before it.
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

// Clear empties the batch.
func (b *Batch) Clear() {
	if b.Lines, b.held = b.Lines[:0], b.held[:0]; cap(b.held) > 2*longBatch {
		b.held = nil // drop the buffer of a long line
	}
}

// Size is how many bytes the batch holds.
func (b *Batch) Size() int { return len(b.held) }

// Hold copies bytes into the batch's buffer.
func (b *Batch) Hold(p []byte) []byte {
	from := len(b.held)
	b.held = append(b.held, p...) // earlier slices keep the old array if it moves
	return b.held[from:len(b.held):len(b.held)]
}
