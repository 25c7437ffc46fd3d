package archtest

import (
	"os/exec"
	"strings"
	"testing"
)

// subjectsSince is the last commit whose subject is not checked.
const subjectsSince = "c3091db225407f9bb160b93a2c3019732b84da7f"

// TestCommitSubjects checks the subjects of all commits after subjectsSince. An archive and a shallow clone do not have
// them.
func TestCommitSubjects(t *testing.T) {
	git := func(args ...string) ([]byte, error) {
		// The checkout may belong to another user.
		args = append([]string{"-C", root, "-c", "safe.directory=*"}, args...)
		return exec.CommandContext(t.Context(), "git", args...).Output()
	}
	if _, err := git("rev-parse", "--verify", "--quiet", subjectsSince+"^{commit}"); err != nil {
		t.Skipf("subjects of commits are not checked: commit %.7s is not here (%v)", subjectsSince, err)
	}
	out, err := git("log", "--no-merges", "--format=%h %s", subjectsSince+"..HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		commit, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if wrong := checkSubject(subject); wrong != "" {
			t.Errorf("commit %s: %q: %s", commit, subject, wrong)
		}
	}
}

func TestSubjects(t *testing.T) {
	for subject, valid := range map[string]bool{
		"archtest: refuse clocks in tests":                     true,
		"interop/pi: read ids of two bytes":                    true,
		"web, server: pass the offset on":                      true,
		"server tests: use a fixed seed":                       true,
		"s3: address buckets by path":                          true,
		"go.mod: focus on Go 1.26":                             true,
		"web: " + strings.Repeat("x", maxSubject-5):            true,
		"web: " + strings.Repeat("x", maxSubject-4):            false,
		"Lines within their width":                             false,
		"docs: the suites' output of a run with moves":         false,
		"docs: Pictures of the viewer":                         false,
		"server: added a limit":                                false,
		"server: adding a limit":                               false,
		"server: adds a limit":                                 false,
		"server: add a limit.":                                 false,
		"server:add a limit":                                   false,
		"Who reads a session that lost its commits is told so": false,
		"": false,
	} {
		if wrong := checkSubject(subject); (wrong == "") != valid {
			t.Errorf("%q: valid is %v, want %v: %s", subject, !valid, valid, wrong)
		}
	}
}
