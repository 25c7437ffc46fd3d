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

// Reread reads an imported file again, for coppice.Options.Reread: the header line, then every entry as the import of
// these bytes stored it. An entry has no Raw if another import cannot reproduce it: the import invented its time, or
// read another file for it. open is called for each pass; two passes run at the same time.
func Reread(open func() (io.ReadCloser, error)) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if err := reread(open, yield); err != nil {
			yield(transcript.Draft{}, err)
		}
	}
}

func reread(open func() (io.ReadCloser, error), yield func(transcript.Draft, error) bool) (err error) {
	var asked atomic.Int64 // number of requests for other files
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
		o := interop.Options{Now: time.Unix(int64(i+1)*1e9, 0)} // two clocks: a difference was not in the file
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
