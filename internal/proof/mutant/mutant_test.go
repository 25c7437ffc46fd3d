// Package mutant tests the suites: the protocol is broken on purpose, one rule at a time, and a suite must detect it. A
// mutant is a replacement in one source file, built by `go test -overlay`, so nothing in the tree is changed.
package mutant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/proof"
)

const (
	root     = "../../.."
	patience = 4 * time.Minute // for one mutant: its build and its suite
	workers  = 2

	sampleEnv = "COPPICE_MUTANTS" // "sample" = only the rows of the sample
)

// The table still fits the sources: each text occurs exactly once. Otherwise a mutant would prove nothing.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("%s stands twice in the table", m.name)
		}
		names[m.name] = true
		if _, err := m.files(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if err := m.hasTests(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if m.want == "" {
			t.Errorf("%s: the table does not say by which finding it is caught", m.name)
		}
	}
	if n := len(asked("")); n < 60 {
		t.Errorf("%d mutants", n)
	}
	if n := len(asked("sample")); n < 6 || n > 12 {
		t.Errorf("%d mutants in the sample: it has to find a broken table, and to take half a minute", n)
	}
}

// hasTests returns an error if the package of m lacks a test that run1 names: go test passes if no test matches.
func (m mutant) hasTests() error {
	files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
	if err != nil {
		return err
	}
	var sources strings.Builder
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sources.Write(source)
	}
	for test := range strings.SplitSeq(m.run1, "|") {
		test, _, _ = strings.Cut(strings.TrimSuffix(test, "$"), "/")
		if !strings.Contains(sources.String(), "\nfunc "+test) {
			return fmt.Errorf("%s has no test %s", m.pkg, test)
		}
	}
	return nil
}

// Every mutant is caught by the suite in the table, with the violation in the table.
func TestProofMutants(t *testing.T) {
	if proof.Asked(t) == proof.Quick {
		t.Skip("builds each mutant: with COPPICE_PROOF=ci")
	}
	r := proof.Begin(t, "mutants")
	todo := make(chan mutant)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for m := range todo {
				t.Run(m.name, func(t *testing.T) {
					begun := time.Now()
					err := m.run(t.Context(), t.TempDir())
					r.Explored(1)
					if err != nil {
						r.Violation("%s (%s): %v", m.name, m.broken, err)
						return
					}
					t.Logf("%-28s caught by %s, %.0f s", m.name, m.suite, time.Since(begun).Seconds())
				})
			}
		})
	}
	for _, m := range asked(os.Getenv(sampleEnv)) {
		todo <- m
	}
	close(todo)
	all.Wait()
}

// asked returns the rows to build: all, or those of the sample.
func asked(which string) []mutant {
	if which != "sample" {
		return mutants
	}
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !m.sample })
}

// files returns the mutant's files with its edits, by their paths in the module.
func (m mutant) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits {
		p, ok := files[e.file]
		if !ok {
			var err error
			if p, err = os.ReadFile(filepath.Join(root, e.file)); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(p, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("%s: the text to break stands there %d times: %q", e.file, n, e.old)
		}
		files[e.file] = bytes.Replace(p, []byte(e.old), []byte(e.broken), 1)
	}
	return files, nil
}

// run builds the mutant and runs its suite, which has to fail with the finding in the table: a failure of another kind,
// or of the build, does not show that the suite detects the mutant.
func (m mutant) run(ctx context.Context, dir string) error {
	files, err := m.files()
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for name, p := range files {
		file, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return err
		}
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(name)))
		if err := os.WriteFile(replace[file], p, 0o600); err != nil {
			return err
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	p, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, p, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, "go", "test", "-vet=off", "-overlay", overlay, "-count=1", "-run", m.run1, "./"+m.pkg)
	c.Dir = root
	c.Env = append(os.Environ(), "COPPICE_PROOF="+m.size)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	text := string(out)
	if len(text) > 2000 {
		text = text[:2000]
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("its suite did not end: " + text)
	case err == nil:
		return errors.New("nobody noticed: " + m.suite + " passed")
	case strings.Contains(string(out), "[build failed]"), !strings.Contains(string(out), "--- FAIL"):
		return errors.New("its suite did not run: " + text)
	case !strings.Contains(string(out), m.want):
		return fmt.Errorf("its suite failed, and does not say %q: %s", m.want, text)
	}
	return nil
}
