package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/interop/pi/harness"
	"github.com/coppice-go/coppice/transcript"
)

// piFile reads a file of pi, either of its coding agent or of its agent-core harness, which the content decides. The
// source is opened once for both.
type piFile struct {
	src interop.Source
	o   interop.Options
	r   interop.Reader // nil = not open yet
	err error          // of opening
}

func openPi(src interop.Source, o interop.Options) interop.Reader { return &piFile{src: src, o: o} }

// Header opens the file.
func (p *piFile) Header() (interop.Header, error) {
	if p.r == nil && p.err == nil {
		p.r, p.err = p.open()
	}
	if p.err != nil {
		return interop.Header{}, p.err
	}
	return p.r.Header()
}

func (p *piFile) open() (interop.Reader, error) {
	if p.o.From != nil { // only files of the coding agent have marks
		return begun(pi.Open(p.src, p.o)), nil
	}
	f, err := p.src.Open()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, headBytes)
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return nil, errors.Join(fmt.Errorf("read %s: %w", p.src.Name, err), f.Close())
	}
	src := p.src
	src.Open = func() (io.ReadCloser, error) {
		return struct {
			io.Reader
			io.Closer
		}{in, f}, nil
	}
	if harness.Detect(head) {
		return begun(harness.NewReader(src, p.o)), nil
	}
	return begun(pi.Open(src, p.o)), nil
}

// begun makes a reader open its source, so that closing the reader closes it. The reader returns an error of the source
// again when it is used.
func begun(r interop.Reader) interop.Reader {
	_, _ = r.Header()
	return r
}

// Next returns the next entry.
func (p *piFile) Next() (transcript.Draft, error) {
	if _, err := p.Header(); err != nil {
		return transcript.Draft{}, err
	}
	return p.r.Next()
}

// Verbatim returns the reader's.
func (p *piFile) Verbatim() bool { return p.r != nil && p.r.Verbatim() }

// Mark returns the reader's.
func (p *piFile) Mark() *interop.Mark {
	if m, ok := p.r.(interop.Marker); ok {
		return m.Mark()
	}
	return nil
}

// BadLines returns the reader's.
func (p *piFile) BadLines() int {
	if p.r == nil {
		return 0
	}
	return p.r.BadLines()
}

// Diagnostics returns the reader's.
func (p *piFile) Diagnostics() []transcript.Diagnostic {
	if p.r == nil {
		return nil
	}
	return p.r.Diagnostics()
}

// Close closes the reader and the source.
func (p *piFile) Close() error {
	if p.r == nil {
		return nil
	}
	return p.r.Close()
}

// continuePi continues a file of pi. It reads a file of the agent-core harness to its end first, which determines the
// form of the added lines.
func continuePi(
	w io.Writer, original io.Reader, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error],
	head string,
) (interop.Losses, error) {
	in, start, err := begin(original)
	if err != nil {
		return nil, err
	}
	if !harness.Detect(start) {
		return after(pi.Extend)(w, in, h, known, entries, head)
	}
	seeker, ok := original.(io.ReadSeeker)
	if !ok {
		return nil, fmt.Errorf("%w: %s's harness, of which the end must be read first", ErrNoAppend, interop.Pi)
	}
	rewind := func() (io.ReadCloser, error) {
		_, err := seeker.Seek(0, io.SeekStart)
		return io.NopCloser(seeker), err
	}
	end, err := harness.ReadEnd(interop.Source{Name: "the original", Open: rewind})
	if errors.Is(err, harness.ErrNoEnd) {
		return nil, fmt.Errorf("%w: %w", ErrNoAppend, err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := rewind(); err != nil {
		return nil, err
	}
	return appendTo(w, seeker, func(w io.Writer) (interop.Losses, error) { return end.Append(w, known, entries, head) })
}
