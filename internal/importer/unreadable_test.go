package importer

import (
	"errors"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/interop"
)

// A store that cannot be read for a moment is an error of the file: it does not make a second session of it. Each read
// that an import of a known file makes fails once.
func TestImportFromAStoreThatCannotBeRead(t *testing.T) {
	omp := `{"type":"title","v":1,"title":"T","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}` + "\n" +
		`{"type":"session","version":3,"id":"o","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z",` +
		`"message":{"role":"user","content":"hi"}}` + "\n"
	away := errors.New("the store is away")
	for name, file := range map[string]string{"verbatim": string(session.JSONL()), "with an original": omp} {
		for skip := range 40 {
			b := memory.New()
			if _, err := Import(t.Context(), storeOn(t, b), interop.Bytes("f", []byte(file)), options()); err != nil {
				t.Fatal(err)
			}
			faulty := fault.New(b, 1)
			st := storeOn(t, faulty)
			faulty.Add(fault.Rule{When: fault.On("get", ""), Skip: skip, Err: away, Kind: fault.Before})
			o := options()
			o.Grow = true
			_, err := Import(t.Context(), st, interop.Bytes("f", []byte(file)), o)
			if len(faulty.Faults()) == 0 {
				if skip == 0 {
					t.Fatal("the import reads nothing")
				}
				break
			}
			if !errors.Is(err, away) {
				t.Errorf("%s, read %d: %v", name, skip, err)
			}
			if got := sessions(t, storeOn(t, b)); got != 1 {
				t.Fatalf("%s, read %d: %d sessions", name, skip, got)
			}
		}
	}
}

func sessions(t *testing.T, st *coppice.Store) (n int) {
	t.Helper()
	for _, err := range st.List(t.Context(), coppice.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
