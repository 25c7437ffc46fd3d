package hostile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
)

// frame makes a zstd frame by hand: its window (a single segment where 0), the size that it declares (none
// where negative), and blocks that each repeat one byte.
func frame(window byte, declared int64, blocks, size int) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd}
	switch {
	case window == 0:
		out = binary.LittleEndian.AppendUint64(append(out, 0xe0), uint64(declared))
	case declared < 0:
		out = append(out, 0, window)
	default:
		out = binary.LittleEndian.AppendUint64(append(out, 0xc0, window), uint64(declared))
	}
	for i := range blocks {
		head := uint32(1)<<1 | uint32(size)<<3
		if i == blocks-1 {
			head |= 1
		}
		out = append(out, byte(head), byte(head>>8), byte(head>>16), 'x')
	}
	return out
}

// bomb is some KB that unpack to a GiB, told as they are.
func bomb() []byte { return frame(0x38, 1<<30, 8192, 128<<10) }

// bombs hands the decompressor what asks for more than it may have.
func bombs(a *attack) {
	const limit, fair = 1 << 20, 2 << 20
	ok := codec.Compress(nil, bytes.Repeat([]byte("fair "), 1000), codec.Better)
	for name, p := range map[string][]byte{
		"a GiB in some KB":                bomb(),
		"a size that is not told":         frame(0x38, -1, 8192, 128<<10),
		"more than is told":               frame(0x38, 100, 64, 128<<10),
		"2^63 bytes in nothing":           frame(0x38, 1<<62, 1, 1),
		"a window of 2 GiB":               frame(0xa8, 100, 1, 100),
		"the largest window there is":     frame(0xff, 100, 1, 100),
		"a single segment of a TiB":       frame(0, 1<<40, 1, 10),
		"a bomb in a frame":               codec.Compress(nil, bomb(), codec.Better),
		"a thousand frames":               bytes.Repeat(codec.Compress(nil, make([]byte, 4096), codec.Better), 1000),
		"a bomb behind a fair frame":      append(bytes.Clone(ok), bomb()...),
		"a skippable frame of 4 GiB":      {0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff},
		"a frame that never begins":       bytes.Repeat([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, 10_000),
		"a dictionary that nobody has":    {0x28, 0xb5, 0x2f, 0xfd, 0x23, 1, 0, 0, 0, 5, 1, 0, 0},
		"a block that is longer than all": frame(0x38, 1<<20, 1, 1<<20),
	} {
		var err error
		var out []byte
		taken := allocated(func() { out, err = codec.Decompress(nil, p, limit) })
		inner := name == "a bomb in a frame" // fair by itself: what it holds is a bomb again
		if (err == nil) != inner || len(out) > limit || taken > fair {
			a.broken("%s: %d bytes came out, %d were taken: %v", name, len(out), taken, err)
		}
		if inner {
			taken = allocated(func() { _, err = codec.Decompress(nil, out, limit) })
		}
		if !errors.Is(err, codec.ErrLimit) && !errors.Is(err, codec.ErrFormat) || taken > fair {
			a.broken("%s: %d bytes were taken: %v", name, taken, err)
		}
		a.try(1)
	}
}

// bombsInStore puts bombs where a store holds compressed bytes, under checksums that are right.
func bombsInStore(a *attack) {
	if testutil.RaceEnabled {
		a.Skip("it unpacks a GiB several times: make proof does, without the race detector")
	}
	b := memory.New()
	st := a.store(b)
	imported(a, st)
	fair := a.objects(b)
	sealed, original := "", ""
	for key := range fair {
		switch {
		case strings.HasSuffix(key, ".jsonl.zst"):
			sealed = key
		case strings.Contains(key, "/originals/"):
			original = key
		}
	}
	if sealed == "" || original == "" {
		a.Fatalf("a sealed segment %q and an original %q are wanted", sealed, original)
	}
	packed, err := codec.KindCheckpoint.Container(nil, bomb())
	a.must(err)
	summary, err := codec.DecodeSummary(fair[layout.CheckpointKey("s")], codec.KindCheckpoint)
	a.must(err)
	listed, err := codec.KindCheckpoint.Container(summary, bomb())
	a.must(err)
	// An original may be 4 GiB long: it is held against its name before memory is taken for it.
	const fairly = 64 << 20
	for _, t := range []struct {
		key string
		p   []byte
	}{
		{layout.CheckpointKey("s"), packed},
		{layout.CheckpointKey("s"), listed},
		{layout.CheckpointKey("s"), bomb()},
		{original, frame(0x38, 256<<20, 2048, 128<<10)},
		{original, frame(0x38, 1<<62, 8, 128<<10)},
		{original, frame(0xff, 1<<20, 8, 128<<10)},
		{original, bytes.Repeat(codec.Compress(nil, make([]byte, 1<<20), codec.Better), 2000)},
		{sealed, bomb()},
		{sealed, append(bomb(), fair[sealed][len(fair[sealed])-200:]...)},
	} {
		a.put(b, t.key, t.p)
		var found []error
		taken := allocated(func() { found = readAll(a, b) })
		if len(found) == 0 || taken > fairly {
			a.broken("%d bytes in the place of %s: %d were taken: %v", len(t.p), t.key, taken, found)
		}
		for _, err := range found {
			if !errors.Is(err, coppice.ErrCorrupt) {
				a.broken("%d bytes in the place of %s: %v", len(t.p), t.key, err)
			}
		}
		a.put(b, t.key, fair[t.key])
		a.try(1)
	}
	if found := readAll(a, b); len(found) > 0 {
		a.broken("the fair store: %v", found)
	}
}

// imported makes the session "s" of a file that is no pi v3, in a sealed segment.
func imported(a *attack, st *coppice.Store) {
	file := []byte("\xef\xbb\xbf" + `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\r\n")
	var lines []string
	for i := range 600 {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"text %d"}}`, i, i))
	}
	file = append(file, strings.Join(lines, "\r\n")...)
	s, err := st.Import(a.Context(), drafts(append([]string{`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`}, lines...)), original(file))
	a.must(err)
	_, err = s.Append(a.Context(), entry.User("behind it"))
	a.must(err)
	_, err = s.Commit(a.Context(), coppice.Turn{State: 1})
	a.must(err)
	a.must(s.Close())
}

// readAll reads all of the session "s" as a new process would, and gives what went wrong.
func readAll(a *attack, b backend.Backend) (found []error) {
	st := a.store(b)
	ctx := a.Context()
	note := func(err error) {
		if err != nil {
			found = append(found, err)
		}
	}
	s, err := st.Open(ctx, "s", nil)
	note(err)
	if err == nil {
		for _, err := range s.Entries(ctx) {
			note(err)
		}
		note(s.Close())
	}
	note(st.Export(ctx, "s", &bytes.Buffer{}))
	for _, err := range st.List(ctx, coppice.ListOptions{}) {
		note(err)
	}
	r, err := st.Verify(ctx, "s", true)
	note(err)
	for _, p := range r.Problems {
		note(p)
	}
	return found
}

// packed puts hostile msgpack where a checkpoint holds it, and hands it to the decoder itself.
func packed(a *attack) {
	b := memory.New()
	nest := func(head string, n int) string { return strings.Repeat(head, n) + "\xc0" }
	for name, p := range map[string]string{
		"an array of 2^32-1": "\xdd\xff\xff\xff\xff\x00", "a map of 2^32-1": "\xdf\xff\xff\xff\xff", "bytes of 4 GiB": "\xc6\xff\xff\xff\xff", "a text of 4 GiB": "\xdb\xff\xff\xff\xff",
		"20 MiB of arrays": nest("\x91", 20<<20), "65 arrays": nest("\x91", 65), "65 maps": nest("\x81\xa1a", 65), "arrays of arrays": strings.Repeat("\xdc\xff\xff", 100),
		"an extension": "\xc7\x01\x05x", "a time": "\xd6\xff\x00\x00\x00\x00", "the byte that is never used": "\xc1", "bytes behind": "\xc0\xc0", "nothing": "", "half a length": "\xdd\xff",
		"8 MiB of nils": "\xdd\x00\x80\x00\x00" + strings.Repeat("\xc0", 8<<20), "a number for a map": "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "a map of a map": "\x81\x80\x80",
	} {
		var v any
		var err error
		raw := []byte(p)
		taken := allocated(func() { err = codec.Unmarshal(raw, &v) })
		fair := name == "a number for a map" || name == "a map of a map"
		if err == nil && !fair || taken > 1<<20 {
			a.broken("%s: %d bytes were taken: %v", name, taken, err)
		}
		frames := codec.Compress(nil, []byte(p), codec.Better)
		object, err := codec.KindCheckpoint.Container([]byte(p)[:min(len(p), 64)], frames)
		a.must(err)
		a.put(b, layout.CheckpointKey("s"), object)
		inStore(a, b, name, int64(len(p)))
		a.try(2)
	}
	for name, p := range map[string]string{ // they pass the scan, and are held against what is wanted
		"a name twice": "\x82\xa1a\x01\xa1a\x02", "NaN": "\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "broken UTF-8": "\x81\xa1\xff\x01", "a number as a name": "\x81\x01\x01",
	} {
		var s checkpoint.Summary
		if err := codec.Unmarshal([]byte(p), &s); err != nil && !errors.Is(err, codec.ErrFormat) && !errors.Is(err, codec.ErrLimit) {
			a.broken("%s: %v", name, err)
		}
		object, err := codec.EncodeContainer(codec.KindCheckpoint, []byte(p), []byte(p), codec.Default)
		a.must(err)
		a.put(b, layout.CheckpointKey("s"), object)
		inStore(a, b, name, 0)
		a.try(2)
	}
}

// inStore opens and lists a session whose checkpoint is no checkpoint.
func inStore(a *attack, b backend.Backend, name string, fair int64) {
	st := a.store(b)
	var err error
	taken := allocated(func() { _, err = st.Open(a.Context(), "s", nil) })
	if !errors.Is(err, coppice.ErrCorrupt) || taken > 1<<20+4*fair {
		a.broken("%s in a checkpoint: %d bytes were taken: %v", name, taken, err)
	}
	for sum, err := range st.List(a.Context(), coppice.ListOptions{}) {
		if err != nil || sum.ID != "s" || sum.Title != "" {
			a.broken("%s in a checkpoint: listed as %+v, %v", name, sum, err)
		}
	}
}
