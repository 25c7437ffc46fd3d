package claudecode

import (
	"strings"
	"testing"
)

// The folder of a working directory has the name that Claude Code makes: by UTF-16 code units of the composed path, and
// shortened with a hash. The expected names are the output of Claude Code's function.
func TestCwdName(t *testing.T) {
	t.Parallel()
	for cwd, want := range map[string]string{
		`C:\Users\mara`:                                   "C--Users-mara",
		"/srv/caf\u00e9_x.y":                              "-srv-caf--x-y",
		"/srv/cafe\u0301_x.y":                             "-srv-caf--x-y",
		"/srv/\u1102\u1162 \u1103\u1173/\U0001f30a":       "-srv-" + strings.Repeat("-", 6),
		"/srv/" + strings.Repeat("a", 195):                "-srv-" + strings.Repeat("a", 195),
		"/srv/" + strings.Repeat("a", 196):                "-srv-" + strings.Repeat("a", 195) + "-c8xgnb",
		"/srv/" + strings.Repeat("\uc77c\uc9c0/", 80):     "-srv" + strings.Repeat("-", 196) + "-55f41l",
		"/srv/" + strings.Repeat("\U0001f30a", 98):        "-srv" + strings.Repeat("-", 196) + "-bp0wv1",
		"/srv/" + strings.Repeat("\U0001f30a", 97) + "/a": "-srv" + strings.Repeat("-", 196) + "-bq2vtl",
	} {
		if got := cwdName(cwd); got != want {
			t.Errorf("%+q: %s, want %s", cwd, got, want)
		}
	}
}
