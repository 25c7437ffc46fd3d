package integration

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// storeURL is the address of a folder of the target's bucket.
func storeURL(target *s3test.Target, prefix string) string {
	q := url.Values{"region": {target.Config.Region}, "path-style": {strconv.FormatBool(target.PathStyle)}}
	if target.Endpoint != "" {
		q.Set("endpoint", target.Endpoint)
	}
	return "s3://" + target.Bucket + "/" + strings.Trim(prefix, "/") + "?" + q.Encode()
}

// credentials returns those of the target as environment variables of the SDK's default chain.
func credentials(t *testing.T, target *s3test.Target) []string {
	t.Helper()
	c, err := target.Config.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vars := []string{"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken}
	if file := must(target.Environ(t.Context()))(t)["AWS_CA_BUNDLE"]; file != "" {
		vars = append(vars, "AWS_CA_BUNDLE="+file)
	}
	return vars
}

// The command does on S3 what it does on a disk: the scripts of its own tests, on a bucket. Lines about a disk's files
// and requests have the condition [disk] there.
func TestScriptsOnS3(t *testing.T) {
	target := s3test.For(t)
	files, err := filepath.Glob("../internal/cli/testdata/script/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			prefix := target.Prefix(t)
			clitest.Run(t, clitest.Options{
				Files: []string{file}, Store: func(string) string { return storeURL(target, prefix) }, Env: credentials(t, target),
			})
		})
	}
}

// The requests of a command in its own process: one read to resume, one read and one write for a turn.
func TestRequestsOfTheCommand(t *testing.T) {
	target := s3test.For(t)
	store := storeURL(target, target.Prefix(t))
	type counts struct{ Get, Put, Append, List, Stat, Delete int }
	run := func(stdin string, args ...string) counts {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "coppice", append([]string{"--json", "--store", store}, args...)...)
		cmd.Env, cmd.Stdin = append(os.Environ(), credentials(t, target)...), strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s%s", args, err, out, &stderr)
		}
		var doc struct{ IO counts }
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return doc.IO
	}
	run("", "create", "--session", "s")
	for turn := range 3 {
		if got := run(`{"role":"user","content":"hello"}`, "append", "s"); got != (counts{Get: 1, Put: 1}) {
			t.Errorf("turn %d asked %+v", turn, got)
		}
		if got := run("", "resume", "s"); got != (counts{Get: 1}) {
			t.Errorf("resume %d asked %+v", turn, got)
		}
	}
}

// Damage is found by the command, named, and repaired; the test damages the objects directly.
func TestDamageOnS3(t *testing.T) {
	target := s3test.For(t)
	prefix := target.Prefix(t)
	b := backend.WithPrefix(target.Open(t, nil), prefix)
	file := filepath.Join(t.TempDir(), "session.jsonl")
	if err := os.WriteFile(file, session.JSONL(), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "coppice", append([]string{"--store", storeURL(target, prefix)}, args...)...)
		cmd.Env = append(os.Environ(), credentials(t, target)...)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%v: exit code %d (%v), want %d: %s", args, got, err, code, out)
		}
		return string(out)
	}
	run(0, "import", "--session", "s", file)
	for info, err := range b.List(t.Context(), backend.ListOptions{Prefix: "sessions/s/transcript/"}) {
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := b.Get(t.Context(), info.Key, backend.Range{})
		if err != nil {
			t.Fatal(err)
		}
		p[len(p)/2] ^= 1
		if _, err := b.Put(t.Context(), info.Key, p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
	if out := run(5, "verify", "--deep", "s"); !strings.Contains(out, "sessions/s/transcript/") {
		t.Errorf("verify says %s", out)
	}
	run(0, "resume", "s")
	run(0, "repair", "s")
	run(0, "show", "--all", "s")
}

// The demo runs on S3.
func TestDemoOnS3(t *testing.T) {
	target := s3test.For(t)
	cmd := exec.CommandContext(t.Context(), "coppice", "--json", "--store", storeURL(target, target.Prefix(t)), "demo")
	cmd.Env = append(os.Environ(), credentials(t, target)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var doc struct {
		Entries, Problems int
		Restored          struct{ StateEqual, ContextEqual, HeadEqual bool }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if r := doc.Restored; doc.Entries < 100 || doc.Problems != 0 || !r.StateEqual || !r.ContextEqual || !r.HeadEqual {
		t.Errorf("got %+v", doc)
	}
}
