package importer

import (
	"bytes"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/interop"
)

// FuzzImport imports any file, and wants its bytes back, a tree that can be walked, a context, and a store
// that verifies.
func FuzzImport(f *testing.F) {
	f.Add([]byte(session.JSONL()))
	for _, s := range []string{
		"", "\n", "{}", "\xef\xbb\xbf{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/w\"}\r\n{\"type\":\"message\",\"id\":\"a\",\"parentId\":\"a\",\"message\":{}}\r\n",
		`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" + `{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"x"}}` + "\n" +
			`{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[]}}` + "\n" + `{"type":"message","id":"a","parentId":"gone","message":null}`,
		`{"type":"session","id":"../../x","version":9}` + "\n" + `{"type":"compaction","id":"c","parentId":null,"firstKeptEntryId":"c","summary":7}` + "\n\x00\n" + `{"type":"leaf","id":"l","targetId":"l"}`,
		`{"type":"session","version":1}` + "\n" + `{"type":"message","timestamp":1,"message":{"role":"hookMessage","content":"\ud800"}}` + "\nnot json\n[]\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		st, err := coppice.New(memory.New(), &coppice.Options{Now: func() time.Time { return time.Unix(1, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		r, err := Import(t.Context(), st, interop.Bytes("f", file), options())
		if err != nil {
			left := 0
			for range st.List(t.Context(), coppice.ListOptions{}) {
				left++
			}
			if left > 0 {
				t.Fatalf("%q was refused, and %d sessions are there: %v", file, left, err)
			}
			return
		}
		var back bytes.Buffer
		if err := st.Export(t.Context(), r.Session, &back); err != nil || !bytes.Equal(back.Bytes(), file) {
			t.Fatalf("of %q came %q: %v", file, &back, err)
		}
		s, err := st.Open(t.Context(), r.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Context(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range s.Path(t.Context(), "") {
			if n++; err != nil || n > bytes.Count(file, []byte("\n"))+10 {
				t.Fatalf("the path of %q: %d entries, %v", file, n, err)
			}
		}
		report, err := st.Verify(t.Context(), r.Session, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			if p.Kind() != "tree" {
				t.Fatalf("%q: %v", file, p)
			}
		}
	})
}
