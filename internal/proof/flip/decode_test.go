package flip

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/testutil"
)

// verdict is the result of decoding damaged bytes.
type verdict uint8

const (
	silent   verdict = iota // other content, and no error
	detected                // an error
	harmless                // the same content
	lostTail                // a shorter log, and bytes after it that are reported, as after a torn write
	shorter                 // a log that ends with an earlier commit, and nothing after it
)

// decoder reads the bytes of an object as the product does, and judges the result.
type decoder func(q []byte) verdict

// decoderOf returns the decoder of an object; it compares with the content of the undamaged one.
func decoderOf(t testing.TB, s *stored, key string) decoder {
	p := s.objects[key]
	switch kind := kindOf(s, key); kind {
	case "checkpoint", "tombstone", "snapshot":
		return checkpoints(t, p)
	case "sealed segment":
		return sealed(t, p)
	case "index":
		refs, skeletons, err := codec.DecodeIndex(p)
		testutil.OK(t, err)
		want := fmt.Sprint(refs, skeletons)
		return func(q []byte) verdict {
			refs, skeletons, err := codec.DecodeIndex(q)
			return judged(err, func() bool { return fmt.Sprint(refs, skeletons) == want })
		}
	case "run of ids":
		run, err := codec.DecodeIDs(p)
		testutil.OK(t, err)
		want := fmt.Sprint(run)
		return func(q []byte) verdict {
			run, err := codec.DecodeIDs(q)
			return judged(err, func() bool { return fmt.Sprint(run) == want })
		}
	case "blob":
		return func(q []byte) verdict {
			got, err := s.objectsWith(pictures, key, q).GetBlob(context.Background(), &state.State{}, path.Base(key))
			return judged(err, func() bool { return bytes.Equal(got, p) })
		}
	case "original", "list of parts":
		sum := strings.TrimSuffix(strings.TrimSuffix(path.Base(key), ".zst"), ".parts")
		read := func(with string, q []byte) (string, error) {
			var got strings.Builder
			err := s.objectsWith(sessionOf(key), with, q).WriteOriginal(context.Background(), sum, &got)
			return got.String(), err
		}
		want := testutil.Must(read("", nil))(t)
		return func(q []byte) verdict {
			got, err := read(key, q)
			return judged(err, func() bool { return got == want })
		}
	case "active log", "plain segment":
		return logs(t, key, p, kind == "plain segment")
	default: // torn bytes and the proof of a store are not decoded
		return func([]byte) verdict { return harmless }
	}
}

func judged(err error, same func() bool) verdict {
	switch {
	case err != nil:
		return detected
	case same():
		return harmless
	}
	return silent
}

// objectsWith returns a reader of single objects of the store, one of which is damaged.
func (s *stored) objectsWith(id, key string, q []byte) *store.Store {
	return &store.Store{Backend: s.backend(s.frozen().With(key, q)), Session: id}
}

func checkpoints(t testing.TB, p []byte) decoder {
	want := testutil.Must(checkpoint.DecodeSummary(p))(t)
	whole := testutil.Must(testutil.Must(checkpoint.DecodeObject(p))(t).Encode())(t)
	return func(q []byte) verdict {
		o, err := checkpoint.DecodeObject(q)
		v := judged(err, func() bool {
			again, err := o.Encode()
			return err == nil && bytes.Equal(again, whole)
		})
		sum, err := checkpoint.DecodeSummary(q[:min(len(q), 4<<10)])
		if err == nil && !reflect.DeepEqual(sum, want) {
			return silent
		}
		return v
	}
}

// sealed reads a segment whole, and as a reader of single entries does: by its index, one frame at a time.
func sealed(t testing.TB, p []byte) decoder {
	want, whole, err := codec.DecodeSegment(p, 1<<20)
	testutil.OK(t, err)
	rows := fmt.Sprint(testutil.Must(whole.Skeleton())(t))
	return func(q []byte) verdict {
		raw, _, err := codec.DecodeSegment(q, 1<<20)
		v := judged(err, func() bool { return bytes.Equal(raw, want) })
		idx, need, err := codec.DecodeSegmentIndex(q, int64(len(q)))
		if err != nil || need > 0 || v == silent {
			return v
		}
		if idx.First != whole.First || idx.Count != whole.Count || len(q) != len(p) {
			return detected // the reference to it has the checksum
		}
		if skel, err := idx.Skeleton(); err == nil && fmt.Sprint(skel) != rows {
			return silent
		}
		at := 0
		for i := range idx.Frames() {
			off, n := idx.FrameRange(i)
			if off < 0 || n < 0 || off+n > int64(len(q)) {
				return detected
			}
			raw, _, err := idx.DecodeFrame(i, q[off:off+n])
			if err != nil {
				return detected
			}
			if at+len(raw) > len(want) || !bytes.Equal(raw, want[at:at+len(raw)]) {
				return silent
			}
			at += len(raw)
		}
		return v
	}
}

// logLines is the content of a plain segment.
type logLines struct {
	lines    []string
	opening  int   // end of the first lines
	ends     []int // end of each commit
	good     int
	promised bool
}

func readLog(name layout.Segment, q []byte) (l logLines, err error) {
	o, err := segment.ParseOpening(q, name.First == 0)
	if err != nil {
		return l, err
	}
	l.opening = o.Size
	next, head := o.Prelude.First, int64(-1)
	var placeErr error
	good := segment.Scan(q[o.Size:], o.Prelude.Key, o.Self(), func(c segment.Commit) bool {
		if b := c.Record.Base; b != nil {
			head = b.HeadOrd
		}
		lines, _, err := segment.Place(next, head, &c)
		if err != nil {
			placeErr = err
			return false
		}
		for _, line := range lines {
			l.lines = append(l.lines, fmt.Sprint(line.Ord, line.Parent, string(line.Raw)))
		}
		l.ends = append(l.ends, o.Size+c.End)
		next, head = next+uint64(len(lines)), c.Record.HeadOrd
		return true
	})
	l.good = o.Size + good
	_, l.promised = segment.Promises(q[l.good:], o.Prelude.Key, int64(l.good))
	return l, placeErr
}

// logs reads a plain segment. For any damage the result must be a prefix of the written lines. If the segment is
// closed, the next one shows its end; damage before the last append is detected by the last commit line, if that is
// intact.
//
// One loss cannot be detected: a log that is cut at the end of a commit that no checkpoint is ahead of equals a log
// that was never longer.
func logs(t testing.TB, key string, p []byte, closed bool) decoder {
	name, _, good := layout.ParseSegmentKey(key)
	if !good {
		t.Fatalf("segment key %q", key)
	}
	want := testutil.Must(readLog(name, p))(t)
	last := 0 // start of the last append
	if n := len(want.ends); n > 1 {
		last = want.ends[n-2]
	}
	return func(q []byte) verdict {
		got, err := readLog(name, q)
		switch {
		case err != nil:
			return detected
		case len(got.lines) > len(want.lines):
			return silent
		}
		for i := range got.lines {
			if got.lines[i] != want.lines[i] {
				return silent
			}
		}
		switch {
		case len(got.lines) == len(want.lines) && got.good == len(q):
			return harmless
		case got.promised || closed:
			return detected
		case len(q) == len(p) && bytes.Equal(q[last:], p[last:]):
			return silent
		case got.good < len(q):
			return lostTail
		case bytes.Equal(q, p[:len(q)]):
			return shorter
		}
		return silent
	}
}

var _ backend.Backend = (*Frozen)(nil)
