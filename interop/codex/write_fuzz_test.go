package codex

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// seeds are lines of sessions: of every kind of entry, and of those that a reader makes of rollouts.
func seeds(t testing.TB) (lines []string) {
	t.Helper()
	fill := strings.NewReplacer("~", "text", "@", "k1", "%", "e0")
	s := talk{Header: begun}
	parent := ""
	for i, m := range sayings {
		id := "e" + string(rune('0'+i))
		s.message(id, parent, fill.Replace(m))
		parent = id
	}
	for i, o := range others {
		typ, rest, _ := strings.Cut(fill.Replace(o), " ")
		id := "o" + string(rune('0'+i))
		s.add(id, parent, typ, rest)
		parent = id
	}
	lines = s.lines
	names, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(names) == 0 {
		t.Fatal("no seeds", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	}
	return lines
}

// FuzzWrite: for any entries, the written file can be loaded, and its calls and outputs are paired.
func FuzzWrite(f *testing.F) {
	all := seeds(f)
	for i := 0; i < len(all); i += 3 { // short inputs: fuzzing needs them
		f.Add(strings.Join(all[i:min(i+5, len(all))], "\n"), "cx-5")
	}
	f.Fuzz(checkWrite)
}

func checkWrite(t *testing.T, text, head string) {
	s := talk{Header: begun, lines: strings.Split(text, "\n")}
	last := ""
	for _, raw := range s.lines {
		if l, err := transcript.ParseLine([]byte(raw)); err == nil && l.ID != "" && l.Type != "" && l.Type != "session" {
			last = l.ID
		}
	}
	for _, at := range []string{head, last} {
		var out bytes.Buffer
		if _, err := Write(&out, s.Header, s.all(), at); errors.Is(err, interop.ErrHead) && at == head {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		paired(t, rebuilt(valid(t, out.String())))
		taken(t, out.String())
	}
}

// FuzzContinue: for any rollout, its bytes come first, and the appended lines can be loaded.
func FuzzContinue(f *testing.F) {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), uint8(3))
		f.Add(string(pack(f, data)), uint8(200))
		f.Add(string(data[:len(data)-20]), uint8(9))
	}
	f.Fuzz(checkContinue)
}

func checkContinue(t *testing.T, original string, from uint8) {
	r := NewReader(source(original), interop.Options{Now: now})
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		return
	}
	s := talk{Header: h}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return // a damaged frame
		}
		s.lines = append(s.lines, string(d.Raw))
	}
	known, head := len(s.lines), ""
	if known > 0 {
		head = idOf(t, s.lines[int(from)%known])
	}
	s.message("n1", head, ask("more"))
	s.message("n2", "n1", replied(call("k1", "n", "{}")))
	s.message("n3", "n2", gave("k1", "r"))
	file, _ := s.goOn(t, original, known, "n3")
	added, ok := strings.CutPrefix(file, original)
	if !ok {
		t.Fatal("the original's bytes are others")
	}
	if bytes.HasPrefix([]byte(original), []byte{0x28, 0xb5, 0x2f, 0xfd}) || !utf8.ValidString(added) {
		return
	}
	for l := range strings.Lines(strings.TrimPrefix(added, "\n")) {
		if _, err := validLine(l); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
	}
}

// TestWriteMutations runs the fuzz targets on a bounded number of mutated seeds.
func TestWriteMutations(t *testing.T) {
	testutil.SkipLong(t)
	all := seeds(t)
	var parts []string
	for _, l := range all {
		parts = append(parts, strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune("{}[],:", r) })...)
	}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var text []string
		from := rnd.IntN(len(all))
		for i := range 1 + rnd.IntN(30) {
			l := all[(from+i)%len(all)]
			for rnd.IntN(3) == 0 {
				l = strings.Replace(l, parts[rnd.IntN(len(parts))], parts[rnd.IntN(len(parts))], 1)
			}
			text = append(text, l)
		}
		checkWrite(t, strings.Join(text, "\n"), "cx-7")
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
