// Package hostile attacks the public entry points: the facade and the command line. Limits of a single package are
// tested in that package.
package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/cli"
	"github.com/coppice-go/coppice/internal/proof"
)

// row is a line of the security table.
type row struct {
	name   string // the attack
	rule   string // the rule that must hold
	tests  string // more detailed tests elsewhere
	attack func(a *attack)
}

var table = []row{
	{"bombs in a store: a checkpoint, an imported file's bytes, a segment", "ErrCorrupt with the object; memory is bounded", "codec.TestDecompressRefuses, codec.TestUnmarshalRefuses, flip.TestProofFlips", bombsInStore},
	{
		"JSON in messages, entries and state: depth, duplicate names, numbers, surrogates, BOM, CRLF, NUL", "kept token for token, or refused and nothing stored",
		"transcript.FuzzParseLine, rawjson.FuzzValue, canon.FuzzScan, cli.FuzzInput", oddJSON,
	},
	{"secrets: bodies in errors, logs, reports and on the error output", "ids, sizes and offsets only", "backend.FuzzOpen (passwords in addresses), s3.TestBadAddresses", leaks},
	{"terminals: escape sequences in titles, texts, labels, branches and names", "none reaches the screen", "term.FuzzText", terminals},
	{"pages: markup and script in whatever is said", "text, under a policy that forbids the rest", "export.FuzzHTML, export.TestNothingIsMarkup", pages},
}

// TestProofHostile checks every row of the table. With -v it prints the table.
func TestProofHostile(t *testing.T) {
	r := proof.Begin(t, "hostile")
	for _, row := range table {
		t.Run(strings.ReplaceAll(row.name, "/", " "), func(t *testing.T) {
			a := &attack{T: t, r: r}
			begun := time.Now()
			row.attack(a)
			if a.tried == 0 && !t.Skipped() {
				a.broken("nothing was tried")
			}
			t.Logf("| %s | %s | %d | %s |", row.name, row.rule, a.tried, row.tests)
			t.Logf("%.1f s", time.Since(begun).Seconds())
		})
	}
}

// attack is the run of one row.
type attack struct {
	*testing.T
	r     *proof.Report
	tried int
}

// try counts n attacks.
func (a *attack) try(n int) {
	a.tried += n
	a.r.Explored(n)
}

// broken reports a violation of the rule.
func (a *attack) broken(format string, args ...any) {
	a.Helper()
	a.r.Violation(a.Name()+": "+format, args...)
	a.Errorf(format, args...)
}

// must ends the row on an error in its setup.
func (a *attack) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *attack) store(b backend.Backend) *coppice.Store {
	a.Helper()
	st, err := coppice.New(b, nil)
	a.must(err)
	a.Cleanup(func() { _ = st.Close() })
	return st
}

func (a *attack) session(st *coppice.Store, id string) *coppice.Session {
	a.Helper()
	s, err := st.Create(id, nil)
	a.must(err)
	return s
}

// soon runs f, which must not hang.
func (a *attack) soon(what string, f func()) {
	a.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		a.broken("%s hangs", what)
		a.FailNow()
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// coppice runs a command in this process, with files for its three streams.
func (a *attack) coppice(store, input string, args ...string) (out, errs string, code int) {
	a.Helper()
	dir := a.TempDir()
	names := []string{"in", "out", "err"}
	files := make([]*os.File, len(names))
	for i, name := range names {
		f, err := os.Create(filepath.Join(dir, name))
		a.must(err)
		defer func() { _ = f.Close() }()
		files[i] = f
	}
	_, err := files[0].WriteString(input)
	a.must(err)
	_, err = files[0].Seek(0, 0)
	a.must(err)
	a.Setenv("COPPICE_STORE", store)
	a.Setenv("COLUMNS", "100")
	a.soon(fmt.Sprintf("coppice %.60q", args), func() {
		old := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
		defer func() { os.Stdin, os.Stdout, os.Stderr = old[0], old[1], old[2] }()
		os.Stdin, os.Stdout, os.Stderr = files[0], files[1], files[2]
		code = cli.Main(args)
	})
	o, err := os.ReadFile(filepath.Join(dir, "out"))
	a.must(err)
	e, err := os.ReadFile(filepath.Join(dir, "err"))
	a.must(err)
	return string(o), string(e), code
}

// size chooses a count for the size of the run.
func (a *attack) size(quick, ci, nightly int) int { return proof.Pick(a.T, quick, ci, nightly) }

// objects reads all objects of a store.
func (a *attack) objects(b backend.Backend) map[string][]byte {
	a.Helper()
	all := map[string][]byte{}
	for info, err := range b.List(a.Context(), backend.ListOptions{}) {
		a.must(err)
		p, _, err := b.Get(a.Context(), info.Key, backend.Range{})
		a.must(err)
		all[info.Key] = p
	}
	return all
}

func (a *attack) put(b backend.Backend, key string, p []byte) {
	a.Helper()
	_, err := b.Put(a.Context(), key, p, backend.Cond{})
	a.must(err)
}

// typed reports whether an error has a type that callers can act on.
func typed(err error) bool {
	var e *coppice.Error
	return errors.As(err, &e)
}

func quoted(s string) string { return fmt.Sprintf("%.60q", s) }
