package flip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// answer is the result of one way of reading: content, up to the error if there was one.
type answer struct {
	text string
	err  error
}

// reading holds the results of every way of reading a store, by name, and the findings of verify.
type reading struct {
	answers  map[string]answer
	problems []*coppice.Error
	verify   error
}

// reader reads a store in every way that the facade offers.
type reader struct {
	ctx   context.Context
	store *coppice.Store
	out   reading
}

// readAll lists the store, reads one session whole, and verifies it. A panic becomes an error that no rule permits.
func readAll(b backend.Backend, id string) (out reading) {
	r := &reader{ctx: context.Background(), out: reading{answers: map[string]answer{}}}
	defer func() {
		if p := recover(); p != nil {
			r.out.answers["panic"] = answer{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			out = r.out
		}
	}()
	store, err := coppice.New(b, &coppice.Options{Now: clock(), Rand: chance(9), Writer: "r"})
	if err != nil {
		r.out.answers["store"] = answer{err: err}
		return r.out
	}
	r.store = store
	r.list()
	r.session(id)
	rep, err := store.Verify(r.ctx, id, true)
	r.out.problems, r.out.verify = rep.Problems, err
	return r.out
}

// list reads the listing: a session whose summary cannot be read is listed with its id only.
func (r *reader) list() {
	for x, err := range r.store.List(r.ctx, coppice.ListOptions{}) {
		switch {
		case err != nil:
			r.out.answers["list"] = answer{err: err}
		case x.Commit == "":
			r.out.answers["list "+x.ID] = answer{err: fmt.Errorf("%w: listed without its summary", errDiagnosed)}
		default:
			x.Cursor = "" // contains the time at which the store wrote the checkpoint
			a := answer{}
			if x.Missing > 0 {
				a.err = fmt.Errorf("%w: commit %d is missing", errDiagnosed, x.Missing)
			} else {
				a.text = fmt.Sprintf("%+v", x)
			}
			r.out.answers["list "+x.ID] = a
		}
	}
}

func (r *reader) say(name string, read func(w *bytes.Buffer) error) {
	var w bytes.Buffer
	err := read(&w)
	r.out.answers[name] = answer{w.String(), err}
}

func (r *reader) session(id string) {
	s, err := r.store.Open(r.ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		r.out.answers[id+" open"] = answer{err: err}
		return
	}
	defer s.Close()
	say := func(name string, read func(w *bytes.Buffer) error) { r.say(id+" "+name, read) }
	say("head", func(w *bytes.Buffer) error {
		info := s.Info()
		info.Missing = 0 // the loss was reported: the rest is that of a shorter log
		fmt.Fprintf(w, "%+v %+v", s.Head(), info)
		return nil
	})
	say("state", func(w *bytes.Buffer) error { return stateOf(w, s) })
	say("context", func(w *bytes.Buffer) error { return messages(r.ctx, w, s) })
	say("entries", func(w *bytes.Buffer) error { return entries(w, s.Entries(r.ctx)) })
	say("path", func(w *bytes.Buffer) error { return entries(w, s.Path(r.ctx, "")) })
	say("tree", func(w *bytes.Buffer) error {
		t, err := s.Tree(r.ctx)
		if err == nil {
			fmt.Fprintln(w, t.Head(), t.Branches(), t.Diagnostics())
			for n := range t.Nodes(transcript.FilterAll) {
				fmt.Fprintf(w, "%+v\n", n)
			}
		}
		return err
	})
	var seqs []uint64
	say("log", func(w *bytes.Buffer) error {
		for c, err := range s.Log(r.ctx, coppice.Target{}) {
			if err != nil {
				return err
			}
			seqs = append(seqs, c.Seq)
			fmt.Fprintf(w, "%+v\n", c)
		}
		return nil
	})
	var targets []string
	say("snapshots", func(w *bytes.Buffer) error {
		for i, err := range s.Snapshots(r.ctx) {
			if err != nil {
				return err
			}
			targets = append(targets, "snap:"+i.ID)
			i.Bytes = 0 // of the object itself, damaged or not
			fmt.Fprintf(w, "%+v\n", i)
		}
		return nil
	})
	for i, seq := range seqs {
		if i%9 == 3 { // counted from the head, so that they are the same commits if the end of the log is lost
			targets = append(targets, fmt.Sprintf("seq:%d", seq))
		}
	}
	for _, text := range targets {
		var t coppice.Target
		if err := t.UnmarshalText([]byte(text)); err != nil {
			r.out.answers[id+" "+text] = answer{err: err}
			continue
		}
		say("at "+text, func(w *bytes.Buffer) error {
			v, err := s.At(r.ctx, t)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%+v %+v\n", v.Commit(), v.Document())
			return messages(r.ctx, w, v)
		})
	}
	say("export", func(w *bytes.Buffer) error { return r.store.Export(r.ctx, id, w) })
	say("export as pi", func(w *bytes.Buffer) error { return r.store.ExportPi(r.ctx, id, w) })
}

func stateOf(w *bytes.Buffer, s interface{ State(any) error }) error {
	var v any
	err := s.State(&v)
	fmt.Fprint(w, v)
	return err
}

// messages writes a context. An unreadable image is reported by a diagnostic: that counts as an error here.
func messages(ctx context.Context, w *bytes.Buffer, s interface {
	Context(context.Context) (transcript.Context, error)
},
) error {
	c, err := s.Context(ctx)
	if err != nil {
		return err
	}
	for _, m := range c.Messages {
		fmt.Fprintf(w, "%s\n", m.Raw)
	}
	for _, d := range c.Diagnostics {
		return fmt.Errorf("%w: %+v", errDiagnosed, d)
	}
	return nil
}

func entries(w *bytes.Buffer, seq iter.Seq2[transcript.Entry, error]) error {
	for e, err := range seq {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d %s %s\n", e.Ordinal, e.ID, e.Raw)
	}
	return nil
}

// errDiagnosed is damage that was reported by a diagnostic instead of an error.
var errDiagnosed = errors.New("diagnostic")

// told reports whether an error names the fault: something is damaged, of a later format, or missing.
func told(err error) bool {
	var e *coppice.Error
	if !errors.As(err, &e) && !errors.Is(err, errDiagnosed) {
		return false
	}
	for _, cause := range []error{coppice.ErrCorrupt, codec.ErrVersion, fs.ErrNotExist, errDiagnosed} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// differs returns the name of an answer that is neither true nor an error that names the fault; "" = there is none.
// lost reports whether any answer was an error. Content before an error must be true as well.
func (r *reading) differs(truth *reading) (name string, lost bool) {
	for _, name := range slices.Sorted(mapKeys(r.answers)) {
		got, want := r.answers[name], truth.answers[name]
		_, known := truth.answers[name]
		switch {
		case got.err == nil && got.text == want.text && want.err == nil && known:
		case want.err != nil && got.err != nil && got.err.Error() == want.err.Error():
		case got.err != nil && told(got.err) && (strings.HasPrefix(want.text, got.text) || !known):
			lost = true
		default:
			return name, lost
		}
	}
	for name := range truth.answers {
		if _, have := r.answers[name]; !have {
			lost = true // not reached, because an earlier step failed
		}
	}
	return "", lost
}

func mapKeys(m map[string]answer) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// named reports whether verify found a problem that the undamaged store does not have and that names the object.
func (r *reading) named(truth *reading, key string) bool {
	known := map[string]bool{}
	for _, p := range truth.problems {
		known[problemText(p)] = true
	}
	for _, p := range r.problems {
		if p.Object == key && !known[problemText(p)] {
			return true
		}
	}
	return false
}

func problemText(p *coppice.Error) string {
	return fmt.Sprintf("%s %s %s %d %v", p.Kind(), p.Session, p.Object, p.Offset, p.Err)
}

// TestUndamaged: without damage nothing is reported, nothing is written, and two readings are equal.
func TestUndamaged(t *testing.T) {
	for _, s := range built(t) {
		for _, id := range []string{sid, pictures, parted, deleted} {
			f := s.frozen()
			truth, again := readAll(s.backend(f), id), readAll(s.backend(s.frozen()), id)
			for name, a := range truth.answers {
				t.Logf("%s %-30s %6d bytes %v", s.name, name, len(a.text), a.err)
				if a.err != nil && name != deleted+" open" {
					t.Errorf("%s: %s: %v", s.name, name, a.err)
				}
			}
			if name, lost := again.differs(&truth); name != "" || lost {
				t.Errorf("%s: two readings differ in %s", s.name, name)
			}
			if truth.verify != nil {
				t.Errorf("%s: verify %s: %v", s.name, id, truth.verify)
			}
			for _, p := range truth.problems {
				t.Errorf("%s: verify finds %s", s.name, problemText(p))
			}
			if n := f.Writes.Load(); n != 0 {
				t.Errorf("%s: reading wrote %d times (I14)", s.name, n)
			}
			t.Logf("%s %s: %d calls", s.name, id, f.Calls.Load())
		}
	}
}
