package listing

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	return testutil.Golden(t, *update, filepath.Join("testdata", name), got)
}

// rowsOf returns rows as a store that appends and one that replaces have them.
func rowsOf(whole bool) []row {
	at := time.UnixMilli(1_780_000_000_000).UTC()
	sum := checkpoint.Summary{
		ID: "a", Title: "High water", Cwd: "/w", Parent: "p", Created: at, Updated: at, Entries: 2, Bytes: 900,
		Meta: map[string]string{"user": "7"},
		Head: checkpoint.Head{Seq: 1, Epoch: 1, Commit: "c", Entry: "e", Branch: "main"},
	}
	const segment = "00000000000000000000-00000000000000000001-0000000000000000"
	log := logEnd{name: segment, bytes: 900, written: at, changed: at, epoch: 1}
	now := stamp{size: 800, time: at.UnixNano(), version: "v1"}
	one := row{"a", known{checkpoint: now, at: at.UnixMilli(), log: log}}
	one.sum = encodeSum(&sum, whole)
	gone := checkpoint.Summary{ID: "b", Tombstone: true}
	last := row{"b", known{checkpoint: stamp{size: 9, time: 9}, sum: encodeSum(&gone, whole)}}
	return []row{one, {"c", known{at: at.UnixMilli() - 1}}, last}
}

// The objects of a catalogue have the bytes of docs/format/catalogue.md.
func TestGoldenCatalogue(t *testing.T) {
	blocks := cut(rowsOf(false), blockRows)
	h := head{taken: 1_780_000_001_000, took: 900, blocks: []block{blocks[0].block}, recent: rowsOf(true)}
	got, err := decodeHead(golden(t, "head.bin", h.encode()))
	h.recent = local(h.recent)
	if err != nil || !reflect.DeepEqual(*got, h) {
		t.Errorf("head: %v\n%+v\n%+v", err, *got, h)
	}
	rows, _, err := decodeBlock(golden(t, "rows.bin", blocks[0].p), nil)
	if err != nil || !reflect.DeepEqual(rows, local(rowsOf(false))) {
		t.Errorf("rows: %v\n%+v", err, rows)
	}
	none := func([]byte) bool { return false }
	rows, n, err := decodeBlock(blocks[0].p, none)
	if err != nil || n != 3 || !reflect.DeepEqual(rows, local(rowsOf(false))[1:2]) {
		t.Errorf("a row without a summary is always chosen: %d, %v\n%+v", n, err, rows)
	}
}

// local changes the times of rows to the zone in which they are read.
func local(rows []row) []row {
	rows = slices.Clone(rows)
	for i := range rows {
		log := &rows[i].log
		log.written, log.changed = fromNano(nano(log.written)), fromNano(nano(log.changed))
	}
	return rows
}

// A flipped bit anywhere in an object of a catalogue is found.
func TestDamagedCatalogue(t *testing.T) {
	p := cut(rowsOf(true), blockRows)[0].p
	for bit := range len(p) * 8 {
		q := slices.Clone(p)
		q[bit/8] ^= 1 << (bit % 8)
		if _, _, err := decodeBlock(q, nil); err == nil {
			t.Fatalf("bit %d", bit)
		}
	}
	for n := range p {
		if _, _, err := decodeBlock(p[:n], nil); err == nil {
			t.Fatalf("cut at %d", n)
		}
	}
}

// Whatever rows change, a catalogue has each of them, in blocks of bounded size that are in order.
func TestCompose(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		most := rapid.IntRange(1, 8).Draw(r, "most")
		of, was := map[string]known{}, head{}
		stored := map[string][]row{}
		for range rapid.IntRange(1, 12).Draw(r, "saves") {
			for range rapid.IntRange(0, 12).Draw(r, "changes") {
				name := fmt.Sprint("s", rapid.IntRange(0, 40).Draw(r, "name"))
				if rapid.IntRange(0, 4).Draw(r, "what") == 0 {
					delete(of, name)
					continue
				}
				of[name] = known{at: rapid.Int64Range(0, 50).Draw(r, "at"), sum: []byte(`{"ID":"x"}`)}
			}
			next, blocks := compose(was, of, most, rapid.Bool().Draw(r, "all"))
			for i, b := range blocks {
				for _, w := range b.rows {
					k := of[w.name]
					k.block = int32(i + 1)
					of[w.name] = k
				}
				if b.p != nil {
					rows, _, err := decodeBlock(b.p, nil)
					if err != nil {
						r.Fatal(err)
					}
					stored[b.name] = rows
				}
			}
			was = next
			checkComposed(r, next, stored, of, most)
		}
	})
}

func checkComposed(r *rapid.T, h head, stored map[string][]row, of map[string]known, most int) {
	have := map[string]known{}
	for _, w := range h.recent {
		have[w.name] = w.known
	}
	before := int64(1 << 62)
	for i, b := range h.blocks {
		rows := stored[b.name]
		if len(rows) != b.rows || b.rows > most || rows[0].at != b.newest || rows[len(rows)-1].at != b.oldest {
			r.Fatalf("block %+v: %d rows", b, len(rows))
		}
		if b.newest > before || !slices.IsSortedFunc(rows, newer) {
			r.Fatalf("block %d is not in order", i)
		}
		before = b.oldest
		for _, w := range rows {
			if _, there := have[w.name]; !there {
				have[w.name] = w.known
			}
		}
	}
	for name, k := range of {
		if got, there := have[name]; !there || !got.same(&k) {
			r.Fatalf("%s: %+v, want %+v", name, got, k)
		}
	}
	if len(h.recent) > most {
		r.Fatalf("%d rows in the head", len(h.recent))
	}
}

// Of sessions that are forgotten one after the other no file has a text.
func TestForget(t *testing.T) {
	c := &Catalogue{Dir: t.TempDir()}
	for _, name := range []string{"a", "b", "c"} {
		sum := []byte(`{"preview":"text of ` + name + `"}`)
		c.put(name, known{checkpoint: stamp{size: 1, version: "1"}, at: 1, sum: sum})
	}
	for _, name := range []string{"c", "a", "b"} {
		c.Forget(t.Context(), name) // by a program of its own
		c = &Catalogue{Dir: c.Dir}
	}
	files, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range files {
		p, err := os.ReadFile(filepath.Join(c.Dir, f.Name()))
		if err != nil || bytes.Contains(p, []byte("text of")) {
			t.Errorf("%s: %q, %v", f.Name(), p, err)
		}
	}
}
