package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/demostore"
)

// serve --open opens the one-time link in the browser, SIGHUP makes it read the tokens again, and SIGTERM ends the
// program well: streams end, and what was acknowledged is stored.
func TestServeTerminated(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere another program opens the browser")
	}
	store, desktop := t.TempDir(), t.TempDir()
	opened := filepath.Join(desktop, "opened")
	script := "#!/bin/sh\necho \"$1\" >\"" + opened + "\"\n"
	if err := os.WriteFile(filepath.Join(desktop, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	tokens := tokenFile(t, "two - read")
	cmd := exec.CommandContext(t.Context(), "coppice", "serve", "--store", store, "--addr", "127.0.0.1:0", "--open",
		"--token-file", tokens)
	cmd.Env = process(t, store).Env
	cmd.Env = append(cmd.Env, "PATH="+desktop+string(os.PathListSeparator)+os.Getenv("PATH"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	line := func(prefix string) string {
		text, err := out.ReadString('\n')
		if err != nil || !strings.HasPrefix(text, prefix) {
			t.Fatalf("%q, %v; want %q", text, err, prefix)
		}
		return strings.TrimSpace(strings.TrimPrefix(text, prefix))
	}
	s := &served{t: t, url: line("serving "), link: line("log in once with ")}
	if err := os.Rename(tokenFile(t, "one - read,write"), tokens); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for status := 0; status != http.StatusOK && t.Context().Err() == nil; { // until it has read them
		status, _ = s.ask("GET", "/v1/sessions", "", "Authorization: Bearer one")
	}
	s.wants(http.StatusUnauthorized, "", "GET", "/v1/sessions", "", "Authorization: Bearer two")
	s.wants(http.StatusCreated, "", "PUT", "/v1/sessions/s", `{}`, "If-None-Match: *", "Authorization: Bearer one")
	s.wants(http.StatusOK, "", "POST", "/v1/sessions/s/commits", `{"entries":[{"role":"user","content":"hello"}]}`,
		"If-Match: *", "Authorization: Bearer one")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/s/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer one")
	stream, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", stream, err)
	}
	defer func() { _ = stream.Body.Close() }()
	for raw := []byte(nil); strings.TrimSpace(string(raw)) != s.link && t.Context().Err() == nil; {
		raw, _ = os.ReadFile(opened) // until the browser was opened
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream was cut and not ended: %v", err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if code := exitCode(t, cmd.Wait()); code != api.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if got, _, code := call(t, store, "", "show", "s"); code != 0 || !strings.Contains(got, "hello") {
		t.Errorf("exit code %d: %s", code, got)
	}
}

// serve --demo --open opens a prompt that has two versions, with hints.
func TestDemoOpensAtABranchPoint(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere another program opens the browser")
	}
	desktop := t.TempDir()
	opened := filepath.Join(desktop, "opened")
	script := "#!/bin/sh\necho \"$1\" >\"" + opened + "\"\n"
	if err := os.WriteFile(filepath.Join(desktop, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "coppice", "serve", "--demo", "--demo-turns", "0", "--open",
		"--addr", "127.0.0.1:0")
	cmd.Env = slices.Concat(process(t, t.TempDir()).Env,
		[]string{"PATH=" + desktop + string(os.PathListSeparator) + os.Getenv("PATH")})
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSpace(strings.TrimPrefix(line, "serving "))
	want := base + "/s/" + demostore.Main + "?hints=1&at=" + demostore.Point
	got := ""
	for !strings.HasSuffix(got, "\n") && t.Context().Err() == nil {
		raw, _ := os.ReadFile(opened) // until the browser was opened
		got = string(raw)
	}
	if strings.TrimSpace(got) != want {
		t.Errorf("opened %q, want %q", got, want)
	}
	cancel()
	_ = cmd.Wait()
}
