package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Whoever waits for a listing at a terminal sees how many sessions were looked at, and of how many; the answer is
// the same. Elsewhere there is no bar.
func TestListProgress(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	const sessions = 40
	for i := range sessions {
		must(t, store, "", "create", "--session", fmt.Sprint("s", i))
	}
	for _, command := range []string{"list", "pick"} {
		plain, stderr, code := call(t, store, "", "--json", command)
		if code != 0 || stderr != "" {
			t.Fatalf("%s: exit code %d\n%s", command, code, stderr)
		}
		var out, errs bytes.Buffer
		none := func(string) string { return "" }
		now := time.Now()
		c := &cli{App: &program.App{
			In: strings.NewReader(""), Out: term.New(&out, none), Err: term.NewTerminal(&errs, 80), Getenv: none,
			Now: func() time.Time { now = now.Add(time.Second); return now }, // a slow store
		}}
		if code := c.run(t.Context(), []string{"--store", store, "--json", command}); code != 0 || out.String() != plain {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", command, code, out.String(), plain)
		}
		shown := regexp.MustCompile(`\((\d+)/40`).FindAllStringSubmatch(errs.String(), -1)
		if len(shown) == 0 {
			t.Errorf("%s: no bar: %q", command, errs.String())
			continue
		}
		if first, err := strconv.Atoi(shown[0][1]); err != nil || first >= sessions {
			t.Errorf("%s: the bar came when all was done: %q", command, errs.String())
		}
	}
}
