package coppice_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// used is a store with one session that was imported and used, and what it held.
type used struct {
	objects  map[string][]byte
	lines    map[uint64]string // stored lines of entries by ordinal
	imported int               // entries of the file
	original []byte            // the file
	apart    bool              // the file is kept beside the lines
	header   string            // the session header line
}

// sessionFile is the bundled session as a file of a format.
func sessionFile(t testing.TB, f interop.Format) []byte {
	t.Helper()
	p := session.JSONL()
	if f == interop.Pi {
		return p
	}
	src := importer.FromBytes("session.jsonl", p)
	read := func() (interop.Reader, interop.Header) {
		r := must(formats.Open(src, interop.Pi, interop.Options{Now: time.Unix(0, 0)}))(t)
		return r, must(r.Header())(t)
	}
	r, h := read()
	last := ""
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		l := must(transcript.ParseLine(d.Raw))(t)
		last = l.ID
	}
	var out bytes.Buffer
	all := func() iter.Seq2[transcript.Draft, error] {
		return func(yield func(transcript.Draft, error) bool) {
			r, _ := read()
			for {
				d, err := r.Next()
				if errors.Is(err, io.EOF) || !yield(d, err) {
					return
				}
			}
		}
	}
	_, err := formats.Write(&out, f, h, all(), last)
	ok(t, err)
	return out.Bytes()
}

// storeKind is an empty store of a kind.
func storeKind(kind string) backend.Backend {
	if kind == "append" {
		return memory.NewAppender()
	}
	return memory.New()
}

func rereading() *coppice.Options {
	o := fixedOptions()
	o.Reread = formats.Reread
	return o
}

// useSession imports a file and uses the session: turns, a large image, a snapshot, a branch.
func useSession(t testing.TB, kind string, f interop.Format) used {
	t.Helper()
	b := storeKind(kind)
	store := newStore(t, b, rereading())
	u := used{original: sessionFile(t, f), apart: f != interop.Pi}
	res := must(importer.Import(bg, store, importer.FromBytes("session.jsonl", u.original),
		importer.Options{Session: "s", Now: time.Unix(1e9, 0)}))(t)
	u.imported = res.Entries
	s := open(t, store, "s")
	for i := range 8 {
		say(t, s, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
		if i == 2 {
			image := bytes.Repeat([]byte{byte(i), 'x', 'y', 'z'}, 12<<10)
			must(s.Append(bg, entry.User("look", entry.Image("image/png", image))))(t)
		}
		commit(t, s, state{Turns: i})
		if i == 4 {
			must(s.Snapshot(bg, "here"))(t)
			head := s.Head().Entry
			say(t, s, "u-left")
			commit(t, s, state{Turns: 50})
			must(s.Branch(bg, head, &coppice.BranchOptions{Name: "other"}))(t)
		}
	}
	ok(t, s.Close())
	u.header = headerOf(t, store)
	u.objects, u.lines = map[string][]byte{}, storedLines(t, b)
	for key, p := range objects(t, b) {
		u.objects[key] = []byte(p)
	}
	return u
}

// headerOf is the first line of the session as a pi file.
func headerOf(t testing.TB, store *coppice.Store) string {
	t.Helper()
	var out bytes.Buffer
	ok(t, store.ExportPi(bg, "s", &out))
	header, _, _ := strings.Cut(out.String(), "\n")
	return header
}

// storedLines are the lines of a session's entries by ordinal, as they are stored.
func storedLines(t testing.TB, b backend.Backend) map[uint64]string {
	t.Helper()
	j := must(journal.Open(bg, journal.Config{Backend: b, Session: "s", ReadOnly: true, Now: clock(), Rand: rand.NewChaCha8([32]byte{})}))(t)
	out := map[uint64]string{}
	for l, err := range j.Lines(bg, j.State(), nil) {
		ok(t, err)
		if !l.Commit {
			out[l.Ord] = string(l.Raw)
		}
	}
	ok(t, j.Close(bg))
	return out
}

// hurts are the ways of damage; nil = it is gone.
var hurts = []struct {
	name string
	do   func(rng *rand.Rand, p []byte) []byte
}{
	{"flipped", func(rng *rand.Rand, p []byte) []byte {
		q := bytes.Clone(p)
		q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
		return q
	}},
	{"cut", func(rng *rand.Rand, p []byte) []byte { return bytes.Clone(p[:rng.IntN(len(p))]) }},
	{"gone", func(*rand.Rand, []byte) []byte { return nil }},
}

// One object of a used session is damaged: repair converges, whatever it is. Afterwards verify finds nothing, a
// second repair has nothing to do, every entry is what it was or is named as lost, and of a file that is kept beside
// the session none is.
func TestRepairConverges(t *testing.T) {
	testutil.SkipSizes(t)
	rounds := 2
	if testing.Short() || testutil.RaceEnabled {
		rounds = 1
	}
	for _, kind := range []string{"replace", "append"} {
		for _, f := range []interop.Format{interop.Pi, interop.ClaudeCode, interop.Codex} {
			t.Run(kind+"/"+string(f), func(t *testing.T) {
				u := useSession(t, kind, f)
				for _, key := range slices.Sorted(maps.Keys(u.objects)) {
					if strings.HasPrefix(key, "cas/") {
						continue
					}
					for _, hurt := range hurts {
						for n := range rounds {
							if hurt.name == "gone" && n > 0 {
								continue
							}
							rng := rand.New(rand.NewPCG(uint64(n), uint64(len(key))))
							q := hurt.do(rng, u.objects[key])
							t.Run(fmt.Sprintf("%s/%s/%d", hurt.name, key[strings.IndexByte(key, '/')+1:], n), func(t *testing.T) {
								converges(t, kind, &u, map[string][]byte{key: q})
							})
						}
					}
				}
			})
		}
	}
}

// converges repairs a store of which some objects are damaged, and judges the result.
func converges(t *testing.T, kind string, u *used, hit map[string][]byte) {
	t.Helper()
	b := storeKind(kind)
	for key, p := range u.objects {
		if q, is := hit[key]; is {
			p = q
		}
		if p != nil {
			must(b.Put(bg, key, p, backend.Cond{}))(t)
		}
	}
	store := newStore(t, b, rereading())
	originalGone := false
	for key := range hit {
		originalGone = originalGone || strings.Contains(key, "/originals/")
	}
	if u.apart && !originalGone {
		var out bytes.Buffer
		ok(t, store.Export(bg, "s", &out))
		same(t, "the original of a damaged session", bytes.Equal(out.Bytes(), u.original), true)
	}
	r, err := store.Repair(bg, "s", false)
	ok(t, err)
	said := listed(r)
	for _, p := range r.Problems {
		if errorsIsCorrupt(p) {
			t.Errorf("repair reports damage: %v", p)
		}
	}
	again := must(store.Verify(bg, "s", true))(t)
	for _, p := range again.Problems {
		if errorsIsCorrupt(p) {
			t.Errorf("verify reports damage: %v", p)
		}
	}
	second := must(store.Repair(bg, "s", false))(t)
	if len(second.Problems) > 0 {
		t.Errorf("a second repair finds:\n%s", listed(second))
	}
	now := storedLines(t, b)
	gone, other := 0, 0
	firstUse := uint64(u.imported) + 2
	for ord, was := range u.lines {
		is, there := now[ord]
		switch {
		case is == was:
		case !there || strings.Contains(is, `"coppice.lost"`):
			if gone++; u.apart && !originalGone && ord < firstUse {
				t.Errorf("entry %d is in the original, and lost", ord)
			}
		default:
			other++
			t.Errorf("entry %d is %s, was %s", ord, short(is), short(was))
		}
	}
	if gone > 0 && !strings.Contains(said, "lost") {
		t.Errorf("%d entries are lost, and repair does not say so", gone)
	}
	t.Logf("%d lost, %d other", gone, other)
	if t.Failed() {
		t.Log("\n" + said)
	}
	if now := headerOf(t, store); now != u.header && (u.apart || gone == 0) {
		t.Errorf("the header is %s, was %s", now, u.header)
	}
	s := open(t, store, "s")
	say(t, s, "u-after")
	commit(t, s, state{Turns: 99})
	must(s.Context(context.Background()))(t)
	ok(t, s.Close())
	for _, p := range must(store.Verify(bg, "s", true))(t).Problems {
		if errorsIsCorrupt(p) {
			t.Errorf("a commit later: %v", p)
		}
	}
}

func short(s string) string { return s[:min(len(s), 200)] }

func errorsIsCorrupt(p *coppice.Error) bool {
	switch p.Kind() {
	case "damaged", "missing", "mismatch":
		return true
	}
	return false
}

func listed(r coppice.Report) string {
	var out strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "%s %s: %v\n", p.Kind(), p.Object, p.Err)
	}
	return out.String()
}
