package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
)

// object reads an object whole.
func (w *world) object(key string) []byte {
	w.t.Helper()
	p, _, err := w.b.Get(w.t.Context(), key, backend.Range{})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) put(key string, p []byte) {
	w.t.Helper()
	if _, err := w.b.Put(w.t.Context(), key, p, backend.Cond{}); err != nil {
		w.t.Fatal(err)
	}
}

// keys lists what is below a folder of the session.
func (w *world) keys(folder string) []string {
	w.t.Helper()
	var keys []string
	for info, err := range w.b.List(w.t.Context(), backend.ListOptions{Prefix: layout.SessionPrefix("s1") + folder}) {
		if err != nil {
			w.t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// A writer dies after any byte of its append: what was acknowledged before stays, whole commits of the append count,
// the rest is moved aside and kept, and the session continues.
func TestTornTailAtEveryByte(t *testing.T) {
	testutil.SkipLong(t)
	build := func(t *testing.T) (w *world, key string, before int) {
		w = newWorld(t, memory.NewAppender())
		j := w.create("s1")
		w.turn(j, "a", `1`)
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		key = w.keys(layout.Transcript)[0]
		before = len(w.object(key))
		dead := w.open("s1")
		w.turn(dead, "b", `2`)
		w.turn(dead, "c", `3`)
		return w, key, before
	}
	w, key, before := build(t)
	whole := w.object(key)
	mid := before + bytes.Index(whole[before:], []byte(`"id":"c"`))
	mid = bytes.LastIndexByte(whole[:mid], '\n') + 1
	for cut := before; cut <= len(whole); cut++ {
		w, key, _ := build(t)
		w.put(key, whole[:cut])
		want := []string{"a"}
		good := before
		if cut >= mid {
			want, good = append(want, "b"), mid
		}
		if cut == len(whole) {
			want, good = append(want, "c"), cut
		}
		j := w.open("s1")
		if diff := cmp.Diff(want, w.ids(j)); diff != "" {
			t.Fatalf("cut at %d: a reader sees %s", cut, diff)
		}
		if got := w.object(key); len(got) != cut {
			t.Fatalf("cut at %d: opening for read changed the log (I14)", cut)
		}
		w.turn(j, "d", `4`)
		if diff := cmp.Diff(append(want, "d"), w.ids(w.open("s1"))); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
		torn := w.keys(layout.Torn)
		switch {
		case cut == good && len(torn) == 0:
		case len(torn) != 1 || !bytes.Equal(w.object(torn[0]), whole[good:cut]):
			t.Fatalf("cut at %d: the torn bytes are not kept: %v", cut, torn)
		}
	}
}

func TestForeignBytesAreMovedAsideAndSaid(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		a, ok := b.(backend.Appender)
		if !ok {
			t.Skip("only logs can be appended to by other programs")
		}
		w := newWorld(t, b)
		j := w.create("s1")
		w.turn(j, "a", `1`)
		key := w.keys(layout.Transcript)[0]
		foreign := []byte(`{"type":"message","id":"x","parentId":"a","message":{}}` + "\n")
		if _, err := a.Append(t.Context(), key, int64(len(w.object(key))), foreign); err != nil {
			t.Fatal(err)
		}
		r := w.turn(j, "b", `2`)
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "torn/") {
			t.Errorf("warnings %q do not say where the bytes are", r.Warnings)
		}
		if diff := cmp.Diff([]string{"a", "b"}, w.ids(j)); diff != "" {
			t.Error(diff)
		}
		if torn := w.keys(layout.Torn); len(torn) != 1 || !bytes.Equal(w.object(torn[0]), foreign) {
			t.Errorf("the bytes are not kept: %v", torn)
		}
	})
}

// Damage inside of what was durable is no torn tail: what is intact is read, writing stops, and nothing is
// cut off.
func TestDamageInTheMiddleStopsWriting(t *testing.T) {
	w := newWorld(t, memory.NewAppender())
	j := w.create("s1")
	for i := range 5 {
		w.turn(j, fmt.Sprintf("e%d", i), fmt.Sprint(i))
	}
	key := w.keys(layout.Transcript)[0]
	p := w.object(key)
	at := bytes.Index(p, []byte("text of e2"))
	p[at] ^= 1
	w.put(key, p)
	damaged := w.open("s1")
	if diff := cmp.Diff([]string{"e0", "e1"}, w.ids(damaged)); diff != "" {
		t.Error(diff)
	}
	_, err := damaged.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(damaged, "x", "x")}})
	var f *store.Failure
	if !errors.As(err, &f) || !errors.Is(err, store.ErrCorrupt) || f.Object != key || f.Offset >= int64(at) || f.Offset == 0 {
		t.Errorf("got %v, want store.ErrCorrupt with the offset of the damaged commit", err)
	}
	if !bytes.Equal(w.object(key), p) {
		t.Error("the damaged log was changed")
	}
}

// A bit of the last commit line of a closed session is flipped, in its checksum, near its end, or anywhere else: the
// checkpoint shows that it was acknowledged, so it is damage and no torn tail. Writing stops, and nothing is cut off.
func TestDamagedLastCommitIsNotTorn(t *testing.T) {
	testutil.SkipLong(t)
	build := func() (w *world, key string, p []byte) {
		w = newWorld(t, memory.NewAppender())
		j := w.create("s1")
		for i := range 3 {
			w.turn(j, fmt.Sprintf("e%d", i), fmt.Sprint(i))
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		key = w.keys(layout.Transcript)[0]
		return w, key, w.object(key)
	}
	_, _, p := build()
	line := bytes.LastIndexByte(p[:len(p)-1], '\n') + 1
	for at := line; at < len(p); at++ {
		w, key, p := build()
		p[at] ^= 1
		w.put(key, p)
		j := w.open("s1")
		_, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "x", "x")}})
		if !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("byte %d of %d: the commit after an acknowledged one was damaged: %v, want ErrCorrupt", at-len(p), len(p)-line, err)
		}
		if diff := cmp.Diff([]string{"e0", "e1"}, w.ids(w.open("s1"))); diff != "" {
			t.Errorf("byte %d of %d: a reader sees %s", at-len(p), len(p)-line, diff)
		}
		if !bytes.Equal(w.object(key), p) {
			t.Fatalf("byte %d of %d: the damaged log was changed", at-len(p), len(p)-line)
		}
	}
}

// A handle that was open before meets the damage of a later commit that a checkpoint holds: it cuts nothing off.
func TestDamagedLaterCommitIsNotTorn(t *testing.T) {
	w := newWorld(t, memory.NewAppender())
	j := w.create("s1")
	w.turn(j, "e0", "0")
	other := w.open("s1")
	w.turn(other, "e1", "1")
	if err := other.Close(t.Context()); err != nil { // it writes the checkpoint
		t.Fatal(err)
	}
	key := w.keys(layout.Transcript)[0]
	p := w.object(key)
	p[len(p)-2] ^= 1
	w.put(key, p)
	_, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "x", "x")}})
	if !errors.Is(err, store.ErrCorrupt) || !bytes.Equal(w.object(key), p) {
		t.Fatalf("the commit after an acknowledged one was damaged: %v, want ErrCorrupt and the log as it was", err)
	}
}

// checkpoint_latest is a cache of the log: without it, or with an old or a damaged one, the session is the same.
func TestLostCheckpoint(t *testing.T) {
	ck := layout.CheckpointKey("s1")
	for name, harm := range map[string]func(w *world, old []byte){
		"gone": func(w *world, _ []byte) {
			if err := w.b.Delete(w.t.Context(), ck); err != nil {
				w.t.Fatal(err)
			}
		},
		"damaged": func(w *world, _ []byte) {
			p := w.object(ck)
			p[len(p)/2] ^= 4
			w.put(ck, p)
		},
		"empty": func(w *world, _ []byte) { w.put(ck, nil) },
		"old":   func(w *world, old []byte) { w.put(ck, old) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, memory.NewAppender())
			w.lim = Limits{RollEntries: 8, PublishCommits: 3, Keyframe: 4}
			j := w.create("s1")
			var want []string
			var old []byte
			for i := range 30 {
				id := fmt.Sprintf("e%02d", i)
				w.turn(j, id, fmt.Sprintf(`{"turn":%d}`, i))
				want = append(want, id)
				if i == 10 {
					if err := j.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					j, old = w.open("s1"), w.object(ck)
				}
			}
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := j.State()
			harm(w, old)
			again := w.open("s1")
			st := again.State()
			if diff := cmp.Diff(before.Summary, st.Summary); diff != "" {
				t.Errorf("summary: %s", diff)
			}
			if string(st.DocJSON) != string(before.DocJSON) || string(st.Header) != string(before.Header) {
				t.Errorf("document %s, header %s", st.DocJSON, st.Header)
			}
			if diff := cmp.Diff(before.Branches, st.Branches); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want, w.ids(again)); diff != "" {
				t.Error(diff)
			}
			w.turn(again, "more", `true`)
			if err := again.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append(want, "more"), w.ids(w.open("s1"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A session whose checkpoint is lost is not created again under its id, whether its first segment is sealed or not.
func TestCreateDoesNotTakeOver(t *testing.T) {
	for name, lim := range map[string]Limits{"sealed": {RollEntries: 6, PublishCommits: 2}, "plain": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, memory.NewAppender())
			w.lim = lim
			j := w.create("s1")
			for i := range 20 {
				w.turn(j, fmt.Sprintf("e%d", i), fmt.Sprint(i))
			}
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.b.Delete(t.Context(), layout.CheckpointKey("s1")); err != nil {
				t.Fatal(err)
			}
			again := w.create("s1")
			step := &Step{Reason: "turn", Entries: []*Entry{say(again, "x", "x")}}
			if _, err := again.Commit(t.Context(), step); !errors.Is(err, fs.ErrExist) {
				t.Errorf("got %v", err)
			}
			if got := len(w.ids(w.open("s1"))); got != 20 {
				t.Errorf("%d entries are left of 20", got)
			}
		})
	}
}

// A kept turn is two commits in one append. Torn anywhere, the session is where the winner left it, and the turn is
// there whole or not at all.
func TestTornKeepBoth(t *testing.T) {
	testutil.SkipLong(t)
	build := func(t *testing.T) (w *world, key string, before int) {
		w = newWorld(t, memory.NewAppender())
		w.turn(w.create("s1"), "a", `1`)
		j1, j2 := w.open("s1"), w.open("s1")
		w.turn(j1, "b", `2`)
		key = w.keys(layout.Transcript)[0]
		before = len(w.object(key))
		w.commit(j2, &Step{Entries: []*Entry{say(j2, "c", "c")}, Edit: setState(`3`), KeepBoth: true})
		return w, key, before
	}
	w, key, before := build(t)
	whole := w.object(key)
	kept := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1 // where the line back begins
	step := 1
	if testing.Short() {
		step = 7
	}
	for cut := before; cut <= len(whole); cut += step {
		w, key, _ := build(t)
		w.put(key, whole[:cut])
		if err := w.b.Delete(t.Context(), layout.CheckpointKey("s1")); err != nil {
			t.Fatal(err)
		}
		j := w.open("s1")
		st := j.State()
		if st.Summary.Entry != "b" || st.Summary.Branch != "main" || string(st.Doc.State) != "2" {
			t.Fatalf("cut at %d: it stands at %+v with state %s", cut, st.Summary.Head, st.Doc.State)
		}
		w.turn(j, "d", `4`)
		want := []string{"a", "b", "d"}
		if cut >= kept { // the losing turn's line is whole: it is in the history, and moves nothing
			want = []string{"a", "b", "c", "d"}
		}
		if diff := cmp.Diff(want, w.ids(w.open("s1"))); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

// dying is the store of a process that dies at one of its writes: that one does not happen, or happens whole, or, an
// append, by half; all that it asks later fails.
type dying struct {
	backend.Appender
	left int    // writes before that one
	way  string // "none", "half" or "whole"
	dead bool
}

var errDied = errors.New("the process died")

// write has a write happen, or not.
func (d *dying) write(do, half func()) error {
	if d.dead {
		return errDied
	}
	if d.left--; d.left >= 0 {
		return nil
	}
	d.dead = true
	switch {
	case d.way == "whole":
		do()
	case d.way == "half" && half != nil:
		half()
	}
	return errDied
}

func (d *dying) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if d.dead {
		return nil, backend.Info{}, errDied
	}
	return d.Appender.Get(ctx, key, r)
}

func (d *dying) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if err := d.write(func() { _, _ = d.Appender.Put(ctx, key, p, c) }, nil); err != nil {
		return backend.Info{}, err
	}
	return d.Appender.Put(ctx, key, p, c)
}

func (d *dying) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	all, half := func() { _, _ = d.Appender.Append(ctx, key, off, p) }, func() { _, _ = d.Appender.Append(ctx, key, off, p[:len(p)/2]) }
	if err := d.write(all, half); err != nil {
		return backend.Info{}, err
	}
	return d.Appender.Append(ctx, key, off, p)
}

func (d *dying) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	if err := d.write(func() { _ = d.Appender.Cut(ctx, key, off, torn) }, nil); err != nil {
		return err
	}
	return d.Appender.Cut(ctx, key, off, torn)
}

func (d *dying) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	if err := d.write(func() { _, _ = d.Appender.Resync(ctx, key, off, size) }, nil); err != nil {
		return backend.Info{}, err
	}
	return d.Appender.Resync(ctx, key, off, size)
}

// A recovery dies at any of its writes, and tears its own append at the place where it found torn bytes. The next one
// keeps both: the torn bytes are in the log until a copy of their own is in torn/.
func TestTornBytesOutliveACrashedRecovery(t *testing.T) {
	for _, way := range []string{"none", "half", "whole"} {
		for left := 0; ; left++ {
			w := newWorld(t, memory.NewAppender())
			w.inline = true
			j := w.create("s1")
			w.turn(j, "a", `1`)
			key, good := w.keys(layout.Transcript)[0], j.State().Active().Bytes
			w.turn(j, "b", `2`)
			torn := w.object(key)[good:]
			torn = torn[:len(torn)*2/3]
			w.put(key, append(w.object(key)[:good], torn...))

			first := *w
			d := &dying{Appender: w.b.(backend.Appender), left: left, way: way}
			first.b = d
			if j, err := Open(t.Context(), first.config("s1")); err == nil {
				_, _ = j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "c", "text of the recovery")}})
			}
			if !d.dead {
				if left < 4 {
					t.Errorf("the recovery made %d writes: it copies, cuts and appends", left)
				}
				break
			}
			what := fmt.Sprintf("the recovery died at write %d, of which came %s", left, way)
			again := w.open("s1")
			behind := w.object(key)[again.State().Active().Bytes:]
			w.turn(again, "d", `4`)
			for name, want := range map[string][]byte{"of the first writer": torn, "that the next recovery found": behind} {
				kept := len(want) == 0
				for _, k := range w.keys(layout.Torn) {
					kept = kept || bytes.Equal(w.object(k), want)
				}
				if !kept {
					t.Errorf("%s: the %d torn bytes %s are gone (I14): %v", what, len(want), name, w.keys(layout.Torn))
				}
			}
		}
	}
}

// cutting calls a function once, between a look at the size of a log and the read of a part of it.
type cutting struct {
	backend.Appender
	good, torn int64 // the part: where it begins, and its length
	before     func()
}

func (c *cutting) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if f := c.before; f != nil && r == backend.Bytes(c.good, c.torn) {
		c.before = nil
		f()
	}
	return c.Appender.Get(ctx, key, r)
}

// Another process cuts torn bytes off between the look at the log and the read of them: the commit looks again.
func TestLogIsCutWhileItIsRead(t *testing.T) {
	b := &cutting{Appender: memory.NewAppender()}
	w := newWorld(t, b)
	j := w.create("s1")
	w.turn(j, "e0", "0")
	key := w.keys(layout.Transcript)[0]
	good, torn := int64(len(w.object(key))), []byte(`{"type":"mess`)
	if _, err := b.Append(t.Context(), key, good, torn); err != nil {
		t.Fatal(err)
	}
	b.good, b.torn = good, int64(len(torn))
	b.before = func() {
		if err := b.Cut(t.Context(), key, good, torn); err != nil {
			t.Error(err)
		}
	}
	w.turn(j, "e1", "1")
	if diff := cmp.Diff([]string{"e0", "e1"}, w.ids(w.open("s1"))); diff != "" || b.before != nil {
		t.Errorf("a reader sees %s; the log was cut: %v", diff, b.before == nil)
	}
}
