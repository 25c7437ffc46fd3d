package journal

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// entriesOf reads the entries of a session as far as they can be read.
func entriesOf(t *testing.T, j *Journal) (ids []string, damage error) {
	st, err := j.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for l, err := range j.Lines(t.Context(), st, nil) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("read: an error of no kind: %v", err)
		}
		if err != nil {
			return ids, err
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil && !l.Commit {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// FuzzTail puts any bytes after the last commit of a log, or changes the log: a reader sees a prefix of what was
// committed and changes nothing; a writer continues after it and keeps the bytes, or refuses and changes nothing (I10,
// I14).
func FuzzTail(f *testing.F) {
	whole := []string{"a", "b", "c"}
	build := func(t testing.TB) (*world, string) {
		w := newWorld(t, memory.NewAppender())
		w.inline = true
		w.lim = Limits{PublishCommits: 1 << 20, PublishBytes: 1 << 30}
		j := w.create("s1")
		for i, id := range whole {
			w.turn(j, id, string(rune('0'+i)))
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w, w.keys(layout.Transcript)[0]
	}
	w, key := build(f)
	log := w.object(key)
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	f.Add([]byte(nil), uint16(0), byte(0))
	f.Add([]byte("{\"type\":\"mess"), uint16(0), byte(0))
	f.Add(make([]byte, 512), uint16(0), byte(0))
	f.Add(log[last:], uint16(0), byte(0))                                                       // the last commit line once more
	f.Add(log[last:], uint16(len(log)-last), byte(0))                                           // and in its own place
	f.Add(slices.Concat([]byte("x\n"), log[bytes.IndexByte(log, '\n')+1:]), uint16(0), byte(0)) // the log again, behind damage
	f.Add([]byte(`{"type":"message","id":"x","parentId":"c","message":{}}`+"\n"), uint16(40), byte(1))
	f.Fuzz(func(t *testing.T, tail []byte, cut uint16, bit byte) {
		w, key := build(t)
		log := w.object(key)
		at := len(log) - int(cut)%len(log)
		damaged := slices.Concat(log[:at], tail)
		if bit > 0 && at > 0 {
			damaged[int(bit)*7%at] ^= 1 << (bit & 7)
		}
		w.put(key, damaged)
		j, err := Open(t.Context(), w.config("s1"))
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, codec.ErrVersion) {
				t.Fatalf("open: an error of no kind: %v", err)
			}
			return
		}
		defer func() { _ = j.Close(t.Context()) }()
		before, unread := entriesOf(t, j)
		if !slices.Equal(before, whole[:min(len(before), len(whole))]) {
			t.Fatalf("a reader sees %q", before)
		}
		if !bytes.Equal(w.object(key), damaged) {
			t.Fatal("opening for read changed the log")
		}
		_, err = j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "new", "text")}})
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("commit: an error of no kind: %v", err)
			}
			if !bytes.Equal(w.object(key), damaged) {
				t.Fatal("a refused commit changed the damaged log")
			}
			return
		}
		after, still := entriesOf(t, w.open("s1"))
		if unread == nil && (still != nil || !slices.Equal(after, append(before, "new"))) {
			t.Fatalf("before %q, after a commit %q, %v", before, after, still)
		}
		good := w.object(key)
		kept := 0
		for kept < min(len(good), len(damaged)) && good[kept] == damaged[kept] {
			kept++
		}
		for _, torn := range w.keys(layout.Torn) {
			if moved := w.object(torn); bytes.HasSuffix(damaged, moved) && len(damaged)-len(moved) <= kept {
				return
			}
		}
		if kept < len(damaged) {
			t.Fatalf("of %d bytes %d are left, and no torn object has the rest: %q", len(damaged), kept, w.keys(layout.Torn))
		}
	})
}
