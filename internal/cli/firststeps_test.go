package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/cli/clitest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// The blocks of docs/first-steps.md that a shell can run are run, in their order, on a machine that has nothing but a
// session of pi's. What the page shows as their output is what they write.
func TestFirstSteps(t *testing.T) {
	testutil.SkipLong(t)
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	page, err := os.ReadFile("../../docs/first-steps.md")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	sessions := filepath.Join(home, ".pi", "agent", "sessions", "--home-mara-src-tideline--")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sessions, "tideline.jsonl"), session.JSONL(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, ran, shown := "", 0, 0
	for _, b := range regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if b[1] == "sh" {
			out = runBlock(t, home, b[2])
			ran++
			continue
		}
		shown++
		if out == "" {
			t.Errorf("output that nothing wrote:\n%s", b[2])
		}
		compareShown(t, b[2], out)
	}
	if ran < 8 || shown < 6 {
		t.Errorf("%d blocks were run, %d outputs compared", ran, shown)
	}
}

// runBlock runs the commands of a block in a folder of the user's and returns what they write.
func runBlock(t *testing.T, home, block string) string {
	t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", block)
	cmd.Dir = home
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "TMPDIR=" + home, "GORACE=" + clitest.NoWait,
		testutil.ShiftVariable + "=" + os.Getenv(testutil.ShiftVariable),
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, block, both.String())
	}
	return both.String()
}

// compareShown looks for each line that the page shows, in their order. "…" is any text, and white space is any other
// white space.
func compareShown(t *testing.T, shown, out string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for line := range strings.Lines(shown) {
		parts := strings.Split(strings.Join(strings.Fields(line), " "), "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(part))
		}
		want := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		at := 0
		for at < len(lines) && !want.MatchString(strings.Join(strings.Fields(lines[at]), " ")) {
			at++
		}
		if at == len(lines) {
			t.Errorf("the page shows\n%s\nwhich the commands do not write:\n%s", line, out)
			return
		}
		lines = lines[at+1:]
	}
}
