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
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
)

// frame builds a zstd frame: its window (a single segment if 0), its declared size (none if negative), and blocks that
// each repeat one byte.
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

// bomb returns some KB that unpack to a GiB, with the true size.
func bomb() []byte { return frame(0x38, 1<<30, 8192, 128<<10) }

// bombsInStore places bombs where a store holds compressed bytes, with correct checksums.
func bombsInStore(a *attack) {
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
	// An original may be 4 GiB long: it is checked against its name before memory is allocated.
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
		{original, bytes.Repeat(codec.Compress(nil, make([]byte, 1<<20), codec.Default), 2000)},
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

// imported creates the session "s" from a file that is not pi v3, in a sealed segment.
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

// readAll reads all of the session "s" as a new process would, and returns all errors.
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
