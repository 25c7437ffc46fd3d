package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// fixtures finds the folder of real session files next to the repository, or at COPPICE_SHARED.
func fixtures(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("COPPICE_SHARED")
	if shared == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; shared == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				shared = filepath.Join(filepath.Dir(dir), "shared")
			}
		}
	}
	dir := filepath.Join(shared, "fixtures", "pi")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("COPPICE_SHARED") != "" {
			t.Fatal(err)
		}
		t.Skipf("no fixtures in %s: set COPPICE_SHARED", dir)
	}
	return dir
}

// Real sessions have the context that pi's and omp's own code make, and come back byte for byte.
func TestRealSessions(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	dir, store := fixtures(t), t.TempDir()
	for _, tt := range []struct {
		file             string
		entries, pi, omp int
		roles            map[string]int
	}{
		{"before-compaction.jsonl", 1002, 446, 439, map[string]int{
			"compactionSummary": 1, "user": 31, "assistant": 219, "toolResult": 192, "bashExecution": 3,
		}},
		{"large-session.jsonl", 1018, 914, 892, map[string]int{"user": 88, "assistant": 453, "toolResult": 373}},
		{"prompt-cache-replay-session.v1.jsonl", 6, 6, 6, nil},
	} {
		file := filepath.Join(dir, tt.file)
		res := must(t, store, "", "import", file, "--session", tt.file)
		if got := value(t, res, "imported.0.entries"); got != fmt.Sprint(tt.entries) {
			t.Errorf("%s: %s entries, want %d", tt.file, got, tt.entries)
		}
		pi := must(t, store, "", "context", "--profile", "pi", tt.file)
		if got := value(t, pi, "messages.len"); got != fmt.Sprint(tt.pi) {
			t.Errorf("%s: %s messages as pi, want %d", tt.file, got, tt.pi)
		}
		roles := map[string]int{}
		for i := range tt.pi {
			roles[value(t, pi, fmt.Sprintf("messages.%d.role", i))]++
		}
		for role, want := range tt.roles {
			if roles[role] != want {
				t.Errorf("%s: %d messages of %s, want %d", tt.file, roles[role], role, want)
			}
		}
		omp := must(t, store, "", "context", "--profile", "omp", tt.file)
		if got := value(t, omp, "messages.len"); got != fmt.Sprint(tt.omp) {
			t.Errorf("%s: %s messages as omp, want %d", tt.file, got, tt.omp)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, stderr, code := call(t, store, "", "export", "--format", "original", tt.file); code != 0 || got != string(want) {
			t.Errorf("%s does not come back: exit code %d, %s", tt.file, code, stderr)
		}
		out := filepath.Join(t.TempDir(), "pi.jsonl")
		must(t, store, "", "export", "-o", out, tt.file)
		again := must(t, store, "", "import", out)
		if got := value(t, again, "imported.0.entries"); got != fmt.Sprint(tt.entries) {
			t.Errorf("%s: exported and imported it has %s entries", tt.file, got)
		}
		if got := value(t, again, "imported.0.badLines"); got != "0" {
			t.Errorf("%s: exported and imported it has %s bad lines", tt.file, got)
		}
	}
}
