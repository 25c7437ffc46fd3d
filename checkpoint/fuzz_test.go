package checkpoint

import (
	"bytes"
	"os"
	"testing"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

// seed adds a golden file and variations of it.
func seed(f *testing.F, names ...string) {
	f.Helper()
	for _, name := range names {
		p, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		p = bytes.TrimSuffix(p, []byte("\n"))
		f.Add(p)
		f.Add(p[:len(p)/2])
		flipped := bytes.Clone(p)
		flipped[len(p)/3] ^= 4
		f.Add(flipped)
	}
}

// AppendLine of a record that ParseRecord accepted returns the same bytes. Self is corrected in the input, so that the
// parser after its check is reached.
func FuzzParseRecord(f *testing.F) {
	seed(f, "commit-source.jsonl", "commit-resume.jsonl", "commit-names.jsonl",
		"commit-plain.jsonl", "commit-full.jsonl", "commit-first.jsonl", "commit-keyed.jsonl",
		"commit-outline.jsonl", "commit-rules.jsonl", "commit-docs.jsonl", "commit-meta.jsonl",
		"commit-partial.jsonl", "prelude-first.jsonl")
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, ours, err := ParseRecord(line, testKey); err != nil && !ours {
			t.Fatalf("an error for a line that is not ours: %v", err)
		}
		if len(line) < selfBytes {
			return
		}
		line = reseal(line)
		r, ours, err := ParseRecord(line, testKey)
		if !ours || err != nil {
			return
		}
		again, _, err := r.AppendLine(nil, testKey, 0, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		// The new line has Len and CRC of an empty commit.
		was, _, err := ParseRecord(again, testKey)
		if err != nil || was.Len != 0 {
			t.Fatal(err)
		}
		a, b := line[:bytes.LastIndex(line, []byte(`,"len":`))], again[:bytes.LastIndex(again, []byte(`,"len":`))]
		if !bytes.Equal(a, b) {
			t.Fatalf("read\n%s, written\n%s", a, b)
		}
	})
}

func FuzzParsePrelude(f *testing.F) {
	seed(f, "prelude-first.jsonl", "prelude-next.jsonl", "commit-plain.jsonl")
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range [][]byte{line, repair(string(line[:max(0, len(line)-len(preludeCRC)-11)]))} {
			got, ok := ParsePrelude(p)
			if !ok {
				continue
			}
			if again, err := got.Line(); err != nil || !bytes.Equal(again, p) {
				t.Fatalf("read\n%s, written\n%s, %v", p, again, err)
			}
		}
	})
}

func FuzzDecodeDocument(f *testing.F) {
	for _, s := range []string{`{}`, `{"state":{"n":1},"branch":"main"}`, `{"state":1,"manager":[2],"context":[{"entry":"e"},{"message":{}}],"branch":"b","settings":{"model":"m","mode":"x"}}`, `{"state":`, `{"branch":"main","docs":{"app:x":[1],"summary":{"n":1}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		d, err := DecodeDocument(p)
		if err != nil {
			if !isCodecError(err) {
				t.Fatal(err)
			}
			return
		}
		if again, err := d.Encode(); err != nil || !bytes.Equal(again, p) {
			t.Fatalf("read\n%s, written\n%s, %v", p, again, err)
		}
	})
}

// An arbitrary body in an intact container.
func FuzzDecodeObject(f *testing.F) {
	seed(f, "checkpoint.bin", "snapshot.bin", "empty.bin", "tombstone.bin")
	f.Fuzz(func(t *testing.T, p []byte) {
		o, err := DecodeObject(p)
		if err != nil {
			if !isCodecError(err) {
				t.Fatal(err)
			}
			return
		}
		q, err := o.Encode()
		if err != nil {
			t.Fatalf("decoded, not encoded: %v", err)
		}
		if _, err := DecodeObject(q); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeObjectBody(f *testing.F) {
	w, err := testObject().wire()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mustMarshal(f, w))
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := DecodeObject(hostile(t, body))
		if err != nil {
			if !isCodecError(err) {
				t.Fatal(err)
			}
			return
		}
		if _, err := o.Encode(); err != nil && !isCodecError(err) {
			t.Fatalf("decoded, not encoded: %v", err)
		}
	})
}

func FuzzDecodeSummary(f *testing.F) {
	seed(f, "checkpoint.bin", "snapshot.bin", "empty.bin", "tombstone.bin")
	f.Fuzz(func(t *testing.T, p []byte) {
		if _, err := DecodeSummary(p); err != nil && !isCodecError(err) {
			t.Fatal(err)
		}
	})
}

func FuzzApplyPatch(f *testing.F) {
	doc := []byte(`{"state":{"a":[1,2,3],"b":{"c":"x","":0}},"branch":"main"}`)
	for _, s := range []string{
		`[]`, `[{"op":"add","path":"/state/a/-","value":{"z":1,"y":2}}]`, `[{"op":"move","from":"/state/b","path":"/state/b"}]`, `[{"op":"replace","path":"/state/a/3","value":1}]`,
		`[{"op":"copy","from":"/state","path":"/state/b/d"}]`, `[{"op":"remove","path":"/state/b/"}]`, `[{"op":"test","path":"","value":null}]`, `[{"op":"add","path":"","value":[]}]`,
	} {
		f.Add(doc, []byte(s), true)
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte, sorted bool) {
		out, err := ApplyPatch(doc, patch, sorted)
		if err != nil {
			if !isCodecError(err) {
				t.Fatal(err)
			}
			return
		}
		if err := canon.Whole(out, "result", canon.EnvelopeDepth); err != nil && canon.Whole(doc, "", canon.EnvelopeDepth) == nil {
			t.Fatalf("%s by %s gives %s: %v", doc, patch, out, err)
		}
	})
}

// Any two documents: a returned patch leads from one to the other.
func FuzzMakePatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,3],"b":{"c":1,"d":2}}`), []byte(`{"a":[2,3],"b":{"c":1,"bb":0,"d":2}}`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"":{"~/":1e400}}`))
	f.Fuzz(func(t *testing.T, from, to []byte) {
		patch, sorted, ok := MakePatch(from, to)
		if !ok || bytes.Equal(from, to) {
			return
		}
		if out, err := ApplyPatch(from, patch, sorted); err != nil || !bytes.Equal(out, to) {
			t.Fatalf("%s to %s by %s: %s, %v", from, to, patch, out, err)
		}
	})
}
