package codex

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// FuzzRead: whatever a file holds, packed or not, a reader gives whole lines, parents first, and comes to an
// end.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
		f.Add(string(pack(f, data)))
	}
	f.Fuzz(check)
}

func check(t *testing.T, text string) {
	t.Helper()
	Detect([]byte(text))
	src := source(text)
	around := folder{"rollout-1-0198aaaa-0000-7000-8000-000000000009.jsonl": text} // what a seed goes on from
	src.List, src.Beside = around.list, around.open
	r := NewReader(src, interop.Options{Now: now})
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := r.Header(); err != nil {
		packed := len(text) >= len(zstdMagic) && text[:len(zstdMagic)] == string(zstdMagic)
		if !errors.Is(err, interop.ErrNotSession) && !packed {
			t.Fatal(err)
		}
		return
	}
	ids := map[string]bool{"": true}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return // a damaged frame
		}
		raw, err := d.Line("", "", now)
		if err != nil {
			t.Fatalf("%v: %.300s", err, d.Raw)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil || !ids[l.ParentID] || ids[l.ID] {
			t.Fatalf("%v: %s", err, raw)
		}
		ids[l.ID] = true
	}
}

// TestMutations does with seeds what fuzzing does without an end: lines cut, doubled, moved, their parts
// exchanged, bytes changed.
func TestMutations(t *testing.T) {
	testutil.SkipSizes(t)
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines, tokens []string
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.SplitAfter(string(data), "\n")...)
		tokens = append(tokens, strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("{}[],:\n", r) })...)
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var text []string
		for range 1 + rnd.IntN(25) {
			line := lines[rnd.IntN(len(lines))]
			for rnd.IntN(3) == 0 && len(line) > 0 {
				at := rnd.IntN(len(line))
				switch rnd.IntN(5) {
				case 0:
					line = line[:at]
				case 1:
					line = line[:at] + string(rune(rnd.IntN(256))) + line[at+1:]
				case 2:
					line = line[:at] + line[at/2:]
				default:
					line = strings.Replace(line, tokens[rnd.IntN(len(tokens))], tokens[rnd.IntN(len(tokens))], 1)
				}
			}
			text = append(text, line)
		}
		check(t, strings.Join(text, ""))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
