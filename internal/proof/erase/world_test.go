package erase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

const (
	id     = "s1"
	secret = "zorbalonquist"
	other  = "quibblefrumpus" // the secret of a second entry
	third  = "drindlemarrow"  // of an amendment whose entry stays
)

// seed is a session with secrets in every kind of object, as bytes by key, and the rest of its content.
type seed struct {
	kind    string
	lim     journal.Limits
	objects map[string][]byte
	image   string            // key of the image that only the secret entry shows
	entries map[string]string // lines by id, those that go left out
	states  map[uint64]string // documents by seq of their commit
	late    snapshot.Info     // of a snapshot that another host has on its way, and its bytes
	body    []byte
}

// world is a copy of the store of a seed.
func (s *seed) world(t testing.TB) *proof.World {
	w := proof.NewWorld(t, proof.StoreOf(s.kind))
	w.Lim, w.Rand = s.lim, rand.NewChaCha8([32]byte{7}) // ids of its own
	for key, p := range s.objects {
		proof.Put(t, w.B, key, p)
	}
	return w
}

func newSeed(t testing.TB, kind string, before, after int) *seed {
	t.Helper()
	ctx := context.Background()
	w := proof.NewWorld(t, proof.StoreOf(kind))
	w.Session(id, before)
	j := w.Open(id)
	original, err := j.PutOriginal(ctx, strings.NewReader(fmt.Sprintf(`{"id":"a","text":"kept"}
{"id":"secret","text":%q}
{"id":"b","text":"kept too"}
`, secret)))
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(j, &journal.Step{Reason: "import", Original: original})
	data := []byte(strings.Repeat("picture of "+secret, 40))
	sum, err := j.PutBlob(ctx, data)
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(j, &journal.Step{Entries: []*journal.Entry{
		proof.Message(j, "secret", fmt.Sprintf("%s coppice-blob:sha256:%s:%d", secret, sum, len(data))),
	}})
	amend(t, w, j, "amendment", "secret", "now it is "+secret)
	w.Turn(j, "amended")
	amend(t, w, j, "own", "amended", "now it is "+third)
	if _, err := j.Snapshot(ctx, j.State(), "kept"); err != nil {
		t.Fatal(err)
	}
	late, err := j.Snapshot(ctx, j.State(), "late")
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(j, &journal.Step{
		Entries: []*journal.Entry{proof.Message(j, "other", other)}, Key: "k", Digest: "0123456789abcdef",
	})
	for i := range after {
		w.Turn(j, fmt.Sprintf("after-%d", i))
	}
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	s := &seed{kind: kind, lim: w.Lim, objects: proof.Objects(t, w.B), late: late}
	key := layout.SnapshotKey(id, late.ID)
	s.body = s.objects[key]
	delete(s.objects, key)
	s.image = proof.KeysWith(s.objects, sum)[0]
	s.entries, s.states = contents(t, w, id)
	return s
}

// amend commits an amendment of an entry.
func amend(t testing.TB, w *proof.World, j *journal.Journal, id, target, text string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"message": map[string]any{"role": "user", "content": text}})
	of := transcript.Entry{ID: target, Type: "message", Raw: fmt.Appendf(nil, `{"type":"message","id":%q}`, target)}
	d, err := of.Amend(body, false)
	if err != nil {
		t.Fatal(err)
	}
	head, err := d.Parsed(id, j.State().Summary.Entry, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(j, &journal.Step{Reason: "amend", Note: true, Entries: []*journal.Entry{{
		Raw: head.Raw, Head: head, ID: head.ID, Parent: journal.PlaceOf(j.State()), Aside: true,
	}}})
}

// contents returns the lines of a session by their ids, but for those that are to go and what an erasure adds, and
// the document at each commit.
func contents(t testing.TB, w *proof.World, id string) (map[string]string, map[uint64]string) {
	t.Helper()
	ctx := context.Background()
	j := w.Open(id)
	entries, states := map[string]string{}, map[uint64]string{}
	for l, err := range j.Lines(ctx, j.State(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if l.Commit {
			continue
		}
		e, err := segment.Entry(l.Ord, l.Raw)
		if err != nil {
			t.Fatal(err)
		}
		_, records := e.Erasure()
		if !records && !slices.Contains([]string{"secret", "other", "amendment", "own"}, e.ID) {
			entries[e.ID] = string(l.Raw)
		}
	}
	for seq := range j.State().Summary.Seq + 1 {
		m, err := j.At(ctx, j.State(), seq)
		if err != nil {
			t.Fatalf("commit %d: %v", seq, err)
		}
		states[seq] = string(m.DocRaw)
	}
	return entries, states
}

// config is that of a handle of package coppice, which completes erasures.
func config(w *proof.World) journal.Config {
	cfg := w.Config(id)
	cfg.Unfinished = func(ctx context.Context, cfg journal.Config) error {
		_, err := erase.Run(ctx, cfg, erase.Target{}, "", erase.Calls{})
		return err
	}
	return cfg
}

func open(t testing.TB, w *proof.World) *journal.Journal {
	j, err := journal.Open(context.Background(), config(w))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// judge finds out what is wrong with a store.
type judge struct {
	t    testing.TB
	s    *seed
	w    *proof.World
	what string
	r    *proof.Report
}

func (g *judge) wrong(format string, args ...any) {
	g.r.Violation("%s: %s: "+format, append([]any{g.s.kind, g.what}, args...)...)
}

// readable: every reader sees the session, with all that is to stay, byte for byte.
func (g *judge) readable() {
	ctx := context.Background()
	j, err := journal.Open(ctx, g.w.Config(id))
	if err != nil {
		g.wrong("open: %v", err)
		return
	}
	have := map[string]string{}
	for l, err := range j.Lines(ctx, j.State(), nil) {
		if err != nil {
			g.wrong("read: %v", err)
			return
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil {
			have[e.ID] = string(l.Raw)
		}
	}
	for id, line := range g.s.entries {
		if have[id] != line {
			g.wrong("entry %s is %.200s, was %.200s", id, have[id], line)
			return
		}
	}
	for seq, doc := range g.s.states {
		m, err := j.At(ctx, j.State(), seq)
		if err != nil || string(m.DocRaw) != doc {
			g.wrong("state of commit %d: %v", seq, err)
			return
		}
	}
	if w := j.State().Window; w != nil {
		for _, e := range w.Entries() {
			if strings.HasPrefix(e.ID, "after-") && !strings.Contains(string(e.Raw), "text of "+e.ID) {
				g.wrong("the window shows %s", e.Raw)
			}
		}
	}
	for key, p := range g.s.objects { // images, and originals of others
		if strings.Contains(key, "/blobs/") && key != g.s.image {
			if now, _, err := g.w.B.Get(ctx, key, all); err != nil || !bytes.Equal(now, p) {
				g.wrong("image %s: %v", key, err)
			}
		}
	}
}

// sound: nothing is damaged.
func (g *judge) sound() {
	rep, err := check.Verify(context.Background(), g.w.Config(id), true)
	if err != nil {
		g.wrong("verify: %v", err)
		return
	}
	for _, p := range rep.Problems {
		if p.Kind.Damage() {
			g.wrong("%v", p)
		}
	}
}

// gone: no object has a text.
func (g *judge) gone(text string) {
	p, err := erase.Prove(context.Background(), g.w.B, text)
	if err != nil || len(p.Found) > 0 {
		g.wrong("%s is in %v: %v", text, p.Found, err)
	}
	for _, key := range proof.KeysWith(proof.Objects(g.t, g.w.B), "/erasures/") {
		g.wrong("%s is left", key)
	}
}

// arrives: a snapshot that was made before the erasure is stored after it. No reader uses it, and a collection removes
// it.
func (g *judge) arrives() {
	ctx := context.Background()
	proof.Put(g.t, g.w.B, layout.SnapshotKey(id, g.s.late.ID), g.s.body)
	if st, err := g.w.Open(id).ReadSnapshot(ctx, g.s.late.ID); !errors.Is(err, fs.ErrNotExist) {
		g.wrong("the late snapshot is read: %v, %v", st, err)
	}
	if _, err := gc.Run(ctx, config(g.w), false); err != nil {
		g.wrong("gc: %v", err)
	}
}

// commits: a writer stores a turn, and it is there.
func (g *judge) commits(name string) {
	j, err := journal.Open(context.Background(), config(g.w))
	if err == nil {
		err = g.turn(j, name)
	}
	if err == nil {
		err = j.Close(context.Background())
	}
	if err != nil {
		g.wrong("a writer afterwards: %v", err)
		return
	}
	if !slices.Contains(g.w.IDs(id), name) {
		g.wrong("turn %s was acknowledged and is lost", name)
	}
}

func (g *judge) turn(j *journal.Journal, name string) error {
	_, err := j.Commit(context.Background(),
		&journal.Step{Reason: "turn", Entries: []*journal.Entry{proof.Message(j, name, "text of "+name)}})
	return err
}

// run erases entries with a backend that fails by rules.
func (g *judge) run(entries []string, rules ...fault.Rule) error {
	cfg := g.w.Config(id)
	if len(rules) > 0 {
		cfg.Backend = fault.New(g.w.B, 1, rules...)
	}
	_, err := erase.Run(context.Background(), cfg, erase.Target{Entries: entries}, "asked for", erase.Calls{})
	return err
}

// finish repeats an erasure until it is acknowledged.
func (g *judge) finish(entries ...string) {
	var err error
	for range 4 {
		if err = g.run(entries); err == nil {
			return
		}
	}
	g.wrong("repeated: %v", err)
}
