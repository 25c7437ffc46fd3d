package formats

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Reread reads an imported file once more: the header line, then every entry as the import of these bytes stored it.
// It is for coppice.Options.Reread. A line for which an import makes up a time comes without Raw, since no second
// import makes up the same; so does one for which it asks for another file, which is not at hand any more. open
// is called for each reading; the file is read twice at the same time.
func Reread(open func() (io.ReadCloser, error)) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if err := reread(open, yield); err != nil {
			yield(transcript.Draft{}, err)
		}
	}
}

func reread(open func() (io.ReadCloser, error), yield func(transcript.Draft, error) bool) (err error) {
	var asked atomic.Int64 // files beside it
	srcs := [2]interop.Source{
		{Name: "the original", Open: open, Beside: func(string) (io.ReadCloser, error) {
			asked.Add(1)
			return nil, fs.ErrNotExist
		}},
		{Name: "the original", Open: open, Beside: func(string) (io.ReadCloser, error) {
			asked.Add(1)
			return io.NopCloser(bytes.NewReader(nil)), nil
		}},
	}
	format, err := Told(srcs[0])
	if err != nil {
		return err
	}
	var readers [2]interop.Reader
	var headers [2]interop.Header
	for i := range readers {
		o := interop.Options{Now: time.Unix(int64(i+1)*1e9, 0)} // two clocks: what differs was not in the file
		if readers[i], err = Open(srcs[i], format, o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, readers[i].Close()) }()
		if headers[i], err = readers[i].Header(); err != nil {
			return err
		}
	}
	if bytes.Equal(headers[0].Raw, headers[1].Raw) && !yield(transcript.Draft{Raw: headers[0].Raw}, nil) {
		return nil
	}
	for {
		before := asked.Load()
		d, err := readers[0].Next()
		other, oerr := readers[1].Next()
		switch {
		case errors.Is(err, io.EOF) && errors.Is(oerr, io.EOF):
			return nil
		case err != nil || oerr != nil:
			return errors.Join(err, oerr)
		case !bytes.Equal(d.Raw, other.Raw), asked.Load() != before:
			d = transcript.Draft{}
		}
		if !yield(d, nil) {
			return nil
		}
	}
}
