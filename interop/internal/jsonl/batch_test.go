package jsonl

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestBatches: batches hold the lines of a reader in their own buffer, within the bound, also when a batch is reused.
// Lines before an error come before it.
func TestBatches(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for i := range rapid.IntRange(0, most(10)).Draw(t, "lines") {
			n := rapid.SampledFrom([]int{0, 1, 100, 10_000, BatchSize / 2, BatchSize, longBatch + 1}).Draw(t, "size")
			text = append(append(text, bytes.Repeat([]byte{byte('a' + i)}, n)...), '\n')
		}
		text = append(text, "torn"...)
		in, want := NewLineReader(io.MultiReader(bytes.NewReader(text), iotest.ErrReader(broken))), NewLineReader(bytes.NewReader(text))
		batches, out := [2]Batch{}, 0
		var before [][]byte
		for n := 0; ; n++ {
			b := &batches[n%2] // the one before is still held
			err := b.Fill(in)
			for i, l := range before {
				if !bytes.Equal(l, batches[(n+1)%2].Lines[i].Bytes) {
					t.Fatal("a batch changed while another was filled")
				}
			}
			if errors.Is(err, broken) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			before = before[:0]
			for i, l := range b.Lines {
				w, err := want.Next()
				if err != nil || !bytes.Equal(l.Bytes, w.Bytes) || l.Number != w.Number || l.Offset != w.Offset || l.Ended != w.Ended {
					t.Fatalf("line %d at %d of %d bytes, want %d at %d of %d, %v", l.Number, l.Offset, l.Size, w.Number, w.Offset, w.Size, err)
				}
				if out++; i > 0 && b.Size()-len(b.Lines[len(b.Lines)-1].Bytes) >= BatchSize {
					t.Fatalf("a batch of %d bytes", b.Size())
				}
				before = append(before, bytes.Clone(l.Bytes))
			}
		}
		if out != bytes.Count(text, []byte{'\n'}) { // the torn line was never whole
			t.Fatalf("%d lines before the error", out)
		}
	})
}

// TestBatchLetsGo: the memory of a long line does not stay with the batch.
func TestBatchLetsGo(t *testing.T) {
	var b Batch
	r := NewLineReader(strings.NewReader(strings.Repeat("x", 8*longBatch) + "\nend\n"))
	for range 2 {
		if err := b.Fill(r); err != nil {
			t.Fatal(err)
		}
	}
	if string(b.Lines[0].Bytes) != "end" || cap(b.held) > 2*longBatch {
		t.Errorf("%q, %d bytes are held", b.Lines[0].Bytes, cap(b.held))
	}
}

// TestGate: while a long batch is in use, Wait blocks until Back or Close; short batches block nothing.
func TestGate(t *testing.T) {
	for _, end := range []func(*Gate){func(g *Gate) { g.Back(longBatch + 1) }, (*Gate).Close} {
		g := NewGate()
		g.Wait()
		g.Out(longBatch)
		g.Wait()
		g.Back(longBatch)
		g.Out(longBatch + 1)
		passed := make(chan bool, 1)
		go func() {
			g.Wait()
			passed <- true
		}()
		if len(g.out) != 1 {
			t.Error("a long batch is out, and the gate is open")
		}
		end(g)
		<-passed
	}
}
