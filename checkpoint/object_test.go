package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/testutil"
)

// testSnapshot is a small object without segments and tail.
func testSnapshot() *Object {
	o := testObject()
	o.Summary.Snapshot, o.Summary.Tag = "00000000000000000007-00000009", "green"
	o.Segments, o.Plain, o.Tail = SegmentMap{}, nil, TailState{}
	return o
}

// keyedObject is a checkpoint of a session whose turns have idempotency keys. Of the second, an earlier release did not
// store the ordinal of its line.
func keyedObject() *Object {
	o := testObject()
	for i, key := range []string{"job 1", "job 2", "job 1", "job 3"} {
		ref := KeyRef{Hash: KeyHash(key), Seq: uint64(300 * i), Ord: uint64(70_000 * i)}
		if i == 1 {
			ref.Ord = 0
		}
		o.Keys = AppendKey(o.Keys, ref)
	}
	return o
}

// changedObject is a checkpoint of a session whose metadata has changed since its header line.
func changedObject() *Object {
	o := testObject()
	value := "blue"
	o.Meta = MetaChange{"team": &value, "old": nil}
	o.Summary.Meta = map[string]string{"team": value}
	return o
}

// indexedObject is a checkpoint whose sealed lines are in the id index, except those of the last segment.
func indexedObject() *Object {
	o := testObject()
	for i := range uint64(2) {
		ref := testRef(i)
		ref.FirstSeq, ref.RawBytes = 0, 0
		o.IDs = append(o.IDs, ref)
	}
	return o
}

// loggedObject is a checkpoint of a store that appends, whose summary has the end of the log.
func loggedObject() *Object {
	o := testObject()
	o.Plain = o.Plain[:1]
	o.Summary.LogName, o.Summary.LogBytes = o.Plain[0].Name, o.Plain[0].Bytes
	return o
}

// amendedObject is a checkpoint whose window shows an entry with the text of an amendment, and hides another.
func amendedObject() *Object {
	o := testObject()
	o.Window.Amended, o.Window.AmendedBy = o.Window.Ords[:2:2], []string{"amendment-1", "amendment-2"}
	return o
}

func mustEncode(t testing.TB, o *Object) []byte {
	t.Helper()
	p, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestObjectRoundTrip(t *testing.T) {
	empty := &Object{Summary: Summary{ID: "s"}, HeadOrd: -1}
	gone := &Object{Summary: Summary{ID: "s", Tombstone: true, Head: Head{Seq: 9, Commit: "c"}}, HeadOrd: -1}
	internal := &Object{Summary: Summary{ID: "s", Internal: true, First: "what is it?", Status: "calling"}, HeadOrd: -1}
	described := &Object{
		Summary: Summary{ID: "s", Parent: "p", Relation: "agent", Meta: map[string]string{"team": "blue", "a": "\n"}},
		HeadOrd: -1,
	}
	imported, removed := testObject(), *gone
	resumed, again, lost := testObject(), testObject(), testObject()
	lost.Lineage[0].StateLost = true
	erased := testObject()
	erased.Erased = 7
	again.Since, again.Summary.Epoch = 7, 9
	resumed.Source = resumedSource()
	imported.Source, removed.Source = testSource(), &Source{Program: "pi", Session: "s"}
	for name, o := range map[string]*Object{
		"again": again, "meta": described, "imported": imported, "resumed": resumed, "tombstone-imported": &removed,
		"checkpoint": testObject(), "snapshot": testSnapshot(), "empty": empty, "tombstone": gone, "internal": internal,
		"keys": keyedObject(), "meta-changed": changedObject(),
		"ids": indexedObject(), "amended": amendedObject(), "logged": loggedObject(), "state-lost": lost,
		"erased": erased,
	} {
		p := mustEncode(t, o)
		if !bytes.Equal(p, mustEncode(t, o)) {
			t.Errorf("%s: two encodings differ", name)
		}
		goldenObject(t, name+".bin", p, o)
		got, err := DecodeObject(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Document) == 0 {
			got.Document = nil
		}
		if !reflect.DeepEqual(got, o) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, o)
		}
		s, err := DecodeSummary(p[:min(len(p), 4096)])
		if err != nil || !reflect.DeepEqual(s, o.Summary) {
			t.Errorf("%s: summary %+v, %v", name, s, err)
		}
	}
}

// goldenObject reads a golden object, and compares the input of the compressor. Metadata that is too long for a summary
// is read with the whole object, from the session header line.
func TestLongMetadata(t *testing.T) {
	o := &Object{Summary: Summary{ID: "s"}, HeadOrd: -1}
	long := strings.Repeat("x", 3000)
	o.Header = []byte(`{"type":"session","coppice":{"meta":{"long":"` + long + `"}}}`)
	_, o.Summary.Meta = HeaderRelation(o.Header)
	other := "y"
	o.Meta = MetaChange{"other": &other, "none": nil}
	o.Summary.Meta = o.Meta.Apply(o.Summary.Meta)
	p := mustEncode(t, o)
	got, err := DecodeObject(p)
	if err != nil || got.Summary.Meta["long"] != long || got.Summary.Meta["other"] != "y" || got.Summary.MetaElsewhere {
		t.Errorf("%+v, %v", got.Summary, err)
	}
	if again := mustEncode(t, got); !bytes.Equal(again, p) {
		t.Error("it is encoded otherwise the second time")
	}
	sum, err := DecodeSummary(p[:min(len(p), 4096)])
	if err != nil || sum.Meta != nil || !sum.MetaElsewhere {
		t.Errorf("summary %+v, %v", sum, err)
	}
}

func goldenObject(t *testing.T, name string, p []byte, o *Object) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, p, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeObject(old)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(read.Document) == 0 {
		read.Document = nil
	}
	if !reflect.DeepEqual(read, o) {
		t.Errorf("%s:\n got %+v\nwant %+v", name, read, o)
	}
	oldSummary, oldBody, err := codec.DecodeContainer(old, kindOf(old), MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	summary, body, err := codec.DecodeContainer(p, kindOf(p), MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(oldSummary, summary) || !bytes.Equal(oldBody, body) {
		t.Errorf("%s: summary or body differs from the golden file\n got %x %x\nwant %x %x", name, summary, body, oldSummary, oldBody)
	}
}

// A tail line that the pool holds, byte for byte, is stored once.
func TestObjectSharesBodies(t *testing.T) {
	o := testObject()
	if w, err := o.wire(); err != nil || w.TailSizes[0] != 0 || w.TailSizes[2] != 0 || int(w.TailSizes[1]) != len(o.Tail.Lines[1]) {
		t.Errorf("sizes %v, %v", w.TailSizes, err)
	}
	whole := append(bytes.Clone(o.Pool[18]), "more"...)
	o.Tail.Lines[0] = whole
	if w, err := o.wire(); err != nil || int(w.TailSizes[0]) != len(whole) {
		t.Errorf("sizes %v, %v", w.TailSizes, err)
	}
	got, err := DecodeObject(mustEncode(t, o))
	if err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("a cut body in the pool and the whole line in the tail: %v", err)
	}
}

// Promise: every bit.
func TestObjectDamage(t *testing.T) {
	for name, o := range map[string]*Object{"checkpoint": testObject(), "snapshot": testSnapshot()} {
		p := mustEncode(t, o)
		for i := range p {
			for bit := range 8 {
				p[i] ^= 1 << bit
				if _, err := DecodeObject(p); !isCodecError(err) {
					t.Fatalf("%s: bit %d of byte %d: %v", name, bit, i, err)
				}
				if s, err := DecodeSummary(p); err == nil && !reflect.DeepEqual(s, o.Summary) {
					t.Fatalf("%s: bit %d of byte %d: another summary", name, bit, i)
				}
				p[i] ^= 1 << bit
			}
			if _, err := DecodeObject(p[:i]); !isCodecError(err) {
				t.Fatalf("%s: first %d bytes: %v", name, i, err)
			}
		}
		if _, err := DecodeObject(append(bytes.Clone(p), 0)); !isCodecError(err) {
			t.Errorf("%s: with a byte more: %v", name, err)
		}
	}
}

func isCodecError(err error) bool {
	var limit *codec.LimitError
	return errors.Is(err, codec.ErrFormat) || errors.Is(err, codec.ErrChecksum) || errors.Is(err, codec.ErrLimit) ||
		errors.Is(err, codec.ErrVersion) || errors.As(err, &limit)
}

// A snapshot that was copied over checkpoint_latest, or the reverse, is not taken for the other.
func TestObjectKinds(t *testing.T) {
	o := testSnapshot()
	summary, err := codec.Marshal(o.Summary.wire())
	if err != nil {
		t.Fatal(err)
	}
	p, err := codec.EncodeContainer(codec.KindCheckpoint, summary, nil, codec.Default)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeSummary(p); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("snapshot's summary in a checkpoint: %v", err)
	}
	if _, err := DecodeObject(p); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("snapshot in a checkpoint: %v", err)
	}
}

func TestObjectLimits(t *testing.T) {
	tests := map[string]struct {
		edit         func(*Object)
		limit, value int64
		what         string
	}{
		"branches": {func(o *Object) {
			o.Branches = nil
			for i := range MaxBranches + 1 {
				o.Branches = append(o.Branches, BranchRef{Name: fmt.Sprint(i), Ord: -1})
			}
		}, 1024, 1025, "branches"},
		"title": {func(o *Object) { o.Summary.Title = strings.Repeat("x", 4097) }, 4096, 4097, "title"},
		"working directory": {
			func(o *Object) { o.Summary.Cwd = strings.Repeat("x", 4097) }, 4096, 4097, "working directory",
		},

		"branch name": {func(o *Object) { o.Summary.Branch = strings.Repeat("x", 257) }, 256, 257, "branch name"},
		"tag":         {func(o *Object) { o.Summary.Tag = strings.Repeat("x", 257) }, 256, 257, "tag"},
		"lineage":     {func(o *Object) { o.Lineage = make([]Commit, 65) }, 64, 65, "lineage"},
		"image":       {func(o *Object) { o.Blobs["cc"] = make([]byte, 64<<10+1) }, 65536, 65537, "image cc"},
		"images": {func(o *Object) {
			o.Blobs = map[string][]byte{}
			for i := range 5 {
				o.Blobs[fmt.Sprint(i)] = make([]byte, 60000)
			}
		}, 262144, 300000, "images"},
		"body":   {func(o *Object) { o.Pool[99] = make([]byte, MaxBody) }, MaxBody, 0, "checkpoint (largest part: working context, 67"},
		"object": {func(o *Object) { o.Document = noise(9 << 20) }, MaxObject, 0, "checkpoint (largest part: document, 9437184 bytes)"},
		"many runs": {func(o *Object) {
			o.Segments, o.Tail, o.Plain = SegmentMap{}, TailState{}, nil
			for i := range uint64(1025) {
				ref := testRef(i)
				ref.Count, ref.First = 1, i
				o.IDs = append(o.IDs, ref)
			}
			o.Segments.Levels = [][]codec.Ref{{{Count: 1025}}}
		}, 1024, 1025, "runs of the id index"},
		"many segs": {func(o *Object) { o.Segments.Levels = [][]codec.Ref{make([]codec.Ref, 1025)} }, 1024, 1025, "segment references"},
	}
	for name, tt := range tests {
		o := testObject()
		tt.edit(o)
		_, err := o.Encode()
		var limit *codec.LimitError
		if !errors.As(err, &limit) || limit.Limit != tt.limit || tt.value != 0 && limit.Value != tt.value || !strings.HasPrefix(limit.What, tt.what) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprint(limit.Limit)) || !strings.Contains(text, fmt.Sprint(limit.Value)) {
			t.Errorf("%s: text %q names not both numbers", name, text)
		}
	}
	if _, err := DecodeObject(make([]byte, MaxObject+1)); !isCodecError(err) {
		t.Errorf("an object over the limit: %v", err)
	}
}

// noise does not compress.
func noise(n int) []byte {
	p, x := make([]byte, n), uint64(1)
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x >> 32)
	}
	return p
}

func TestObjectContradicts(t *testing.T) {
	for name, edit := range map[string]func(*Object){
		"window without body":    func(o *Object) { o.Window.Ords = append(o.Window.Ords, 1000) },
		"empty tail line":        func(o *Object) { o.Tail.Lines[1] = nil },
		"gap in the id index":    func(o *Object) { o.IDs = indexedObject().IDs[1:] },
		"ids of unsealed lines":  func(o *Object) { o.IDs = []codec.Ref{testRef(0), testRef(1), testRef(2), testRef(3)} },
		"gap in the segment map": func(o *Object) { o.Segments.Levels[0][1].First++ },
		"snapshot with a tail":   func(o *Object) { o.Summary.Snapshot = "x" },
		"branch without a name":  func(o *Object) { o.Branches[0].Name = "" },
	} {
		o := testObject()
		edit(o)
		if _, err := o.Encode(); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Long texts are truncated for listings, on a rune boundary and with a mark; the id of the head is whole in the object.
func TestSummaryCuts(t *testing.T) {
	o := testObject()
	s := &o.Summary
	s.Title, s.Cwd, s.Preview = strings.Repeat("é", 200), strings.Repeat("/dir", 400), strings.Repeat("日本", 60)
	s.Entry, s.Parent = strings.Repeat("e", 5000), strings.Repeat("p", MaxName)
	s.Branch, s.Tag, s.Reason = strings.Repeat("b", MaxName), strings.Repeat("t", MaxName), strings.Repeat("r", 32)
	o.Segments, o.Plain, o.Tail = SegmentMap{}, nil, TailState{}
	s.Snapshot = strings.Repeat("s", MaxName)
	p := mustEncode(t, o)
	got, err := DecodeSummary(p[:min(len(p), 4096)])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name, got, want string
		limit           int
	}{
		{"title", got.Title, strings.Repeat("é", 126) + "…", 256},
		{"cwd", got.Cwd, strings.Repeat("/dir", 255) + "/" + "…", 1024},
		{"preview", got.Preview, strings.Repeat("日本", 32) + "日" + "…", 200},
		{"entry", got.Entry, strings.Repeat("e", 253) + "…", 256},
		{"parent", got.Parent, s.Parent, MaxName},
		{"branch", got.Branch, s.Branch, MaxName},
		{"tag", got.Tag, s.Tag, MaxName},
	} {
		if f.got != f.want || len(f.got) > f.limit {
			t.Errorf("%s: %d bytes %q, want %q", f.name, len(f.got), f.got, f.want)
		}
	}
	whole, err := DecodeObject(p)
	if err != nil || whole.Summary.Entry != s.Entry {
		t.Errorf("the head of the object is cut too: %v", err)
	}
	if again := whole.Summary.wire(); again != o.Summary.wire() {
		t.Error("cutting what was cut changes it")
	}
	if got := body.Cut("\x80\x80\x80\x80\x80\x80\x80\x80", 6); len(got) > 6 || !strings.HasSuffix(got, "…") {
		t.Errorf("no UTF-8 at all: %q", got)
	}
}

// Title and working directory are whole in the object.
func TestGoldenTexts(t *testing.T) {
	o := testObject()
	o.Summary.Title, o.Summary.Cwd = strings.Repeat("é", 200), strings.Repeat("/dir", 400)
	goldenObject(t, "texts.bin", mustEncode(t, o), o)
}

// The longest texts of a session fit into the summary's 4 KiB, together with the end of the log.
func TestLongestSummary(t *testing.T) {
	o := loggedObject()
	long := func(n int) string { return strings.Repeat("x", n) }
	o.Summary = Summary{
		Head: Head{Seq: 1 << 62, Epoch: 1 << 62, Commit: long(36), Entry: long(5000), Branch: long(MaxName)},
		ID:   long(128), Title: long(300), Cwd: long(2000), Parent: long(MaxName), Preview: long(300), First: long(300),
		Created: time.UnixMilli(1 << 45), Updated: time.UnixMilli(1 << 45), Entries: 1 << 62, Bytes: 1 << 62, Status: "answered",
		Relation: long(32), Meta: map[string]string{"k": long(1<<10 - len(`{"k":""}`))}, Internal: true, Reason: long(32),
		LogName: fmt.Sprintf("%020d-%020d-%016x", 1, 1, 1), LogBytes: 1 << 62,
	}
	p := mustEncode(t, o)
	if whole, err := DecodeObject(p); err != nil || whole.Summary.Title != o.Summary.Title ||
		whole.Summary.Cwd != o.Summary.Cwd {
		t.Errorf("title and working directory of the object are cut: %v", err)
	}
	s, err := DecodeSummary(p[:4096])
	if err != nil || s.LogName != o.Summary.LogName || len(s.Meta["k"]) != len(o.Summary.Meta["k"]) {
		t.Errorf("%+v, %v", s, err)
	}
}

// hostile wraps bytes as the body of an intact container.
func hostile(t testing.TB, body []byte) []byte {
	t.Helper()
	summary, err := codec.Marshal(testObject().Summary.wire())
	if err != nil {
		t.Fatal(err)
	}
	p, err := codec.EncodeContainer(codec.KindCheckpoint, summary, body, codec.Default)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestObjectHostile(t *testing.T) {
	list := func(n int) []byte { // an array of so many empty maps
		return append([]byte{0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, bytes.Repeat([]byte{0x80}, n)...)
	}
	with := func(edit func(*body.Body)) []byte {
		w, err := testObject().wire()
		if err != nil {
			t.Fatal(err)
		}
		edit(w)
		p, err := codec.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	tests := map[string][]byte{
		"no msgpack":         {0xc1},
		"nil":                {0xc0},
		"length bomb":        {0x81, 0xa3, 'd', 'o', 'c', 0xc6, 0xff, 0xff, 0xff, 0xff},
		"array bomb":         {0x81, 0xa4, 'o', 'r', 'd', 's', 0xdd, 0xff, 0xff, 0xff, 0xff},
		"deep":               bytes.Repeat([]byte{0x91}, 1<<20),
		"zstd bomb":          make([]byte, MaxBody+1),
		"million nils":       append([]byte{0xdd, 0, 0x20, 0, 0}, bytes.Repeat([]byte{0xc0}, 1<<21)...),
		"lineage":            with(func(w *body.Body) { w.Lineage = list(1 << 20) }),
		"lineage no list":    with(func(w *body.Body) { w.Lineage = []byte{0x80} }),
		"lineage short":      with(func(w *body.Body) { w.Lineage = []byte{0xdd, 0, 0} }),
		"branches":           with(func(w *body.Body) { w.Branches = list(1 << 20) }),
		"ids":                with(func(w *body.Body) { w.IDs = list(1 << 20) }),
		"plain":              with(func(w *body.Body) { w.Plain = list(1 << 20) }),
		"levels":             with(func(w *body.Body) { w.Levels = make([][]byte, 9) }),
		"level":              with(func(w *body.Body) { w.Levels[0] = list(2000) }),
		"pool sizes":         with(func(w *body.Body) { w.PoolSizes[0]++ }),
		"pool sizes less":    with(func(w *body.Body) { w.PoolSizes[0]-- }),
		"pool ordinals":      with(func(w *body.Body) { w.PoolOrds = w.PoolOrds[1:] }),
		"pool twice":         with(func(w *body.Body) { w.PoolOrds[1] = 0 }),
		"pool descends":      with(func(w *body.Body) { w.PoolOrds[1] = -4 }),
		"blob sizes":         with(func(w *body.Body) { w.BlobSizes[1] = 1 << 31 }),
		"blob twice":         with(func(w *body.Body) { w.BlobSums[1] = w.BlobSums[0] }),
		"blob names":         with(func(w *body.Body) { w.BlobSums = w.BlobSums[:1] }),
		"tail sizes":         with(func(w *body.Body) { w.TailSizes[1] = 0 }),
		"tail not in pool":   with(func(w *body.Body) { w.TailFirst += 100 }),
		"window not in pool": with(func(w *body.Body) { w.Ords[0]++ }),
	}
	for name, body := range tests {
		p := hostile(t, body)
		var err error
		took := testutil.Allocated(func() { _, err = DecodeObject(p) })
		if name == "nil" {
			continue // an empty body is small and harmless
		}
		if !isCodecError(err) {
			t.Errorf("%s: %v", name, err)
		}
		if took > 2*MaxBody {
			t.Errorf("%s: allocated %d bytes", name, took)
		}
	}
}

func TestDecodeSummaryNeedsLittle(t *testing.T) {
	o := testObject()
	o.Pool = maps.Clone(o.Pool)
	o.Pool[50] = noise(100 << 10)
	p := mustEncode(t, o)
	if s, err := DecodeSummary(p[:4096]); err != nil || !reflect.DeepEqual(s, o.Summary) {
		t.Errorf("%+v, %v", s, err)
	}
	for n := range 64 {
		if _, err := DecodeSummary(p[:n]); !isCodecError(err) {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	p, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
