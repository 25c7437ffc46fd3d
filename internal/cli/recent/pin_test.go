package recent_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/recent"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// stored makes a store with a session for each directory, and gives its path.
func stored(t *testing.T, cwds ...string) string {
	t.Helper()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, cwd := range cwds {
		s, err := st.Create("s"+string(rune('0'+i)), &coppice.SessionOptions{Cwd: cwd})
		if err == nil {
			_, err = s.Append(t.Context(), entry.User("hello"))
		}
		if err == nil {
			_, err = s.Commit(t.Context(), coppice.Turn{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// user is whoever types commands.
type user struct {
	t     *testing.T
	env   map[string]string
	store string
	json  bool
}

// run runs a command and gives what it shows, or its error.
func (u *user) run(command func(*program.App) *cobra.Command, args ...string) string {
	u.t.Helper()
	var out, errs bytes.Buffer
	get := func(name string) string { return u.env[name] }
	cmd := command(&program.App{
		Out: term.New(&out, get), Err: term.New(&errs, get), Getenv: get, Now: time.Now, URL: u.store, JSON: u.json,
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(u.t.Context()); err != nil {
		return "error: " + err.Error()
	}
	return out.String() + errs.String()
}

func (u *user) sees(want, got string) {
	u.t.Helper()
	if !strings.Contains(got, want) {
		u.t.Errorf("got %q, want %q", got, want)
	}
}

// A pinned session is picked first, is marked, and stays so for whoever names the store otherwise; its pin can be taken
// off when it is gone.
func TestPins(t *testing.T) {
	u := &user{t: t, env: map[string]string{"COPPICE_STATE": t.TempDir(), "COPPICE_HISTORY": "off"}, store: stored(t, "/w", "/w", "/w")}
	order := func() string {
		var ids []string
		for line := range strings.Lines(u.run(recent.Pick)) {
			ids = append(ids, line[:2])
		}
		return strings.Join(ids[1:], " ")
	}
	u.sees("nothing is pinned", u.run(recent.Pin))
	u.sees("s2 s1 s0", order())
	u.sees("pinned s1", u.run(recent.Pin, "s1"))
	u.sees("pinned s0", u.run(recent.Pin, "s0"))
	u.sees("s1 s0 s2", order())
	u.sees("(pinned) hello", u.run(recent.Pick))
	u.store = "file://" + u.store
	u.sees("s1 s0 s2", order())
	u.json = true
	u.sees(`"pinned":true`, u.run(recent.Pick, "--limit", "1"))
	u.sees(`{"pins":[{"session":"s0","time":"`, u.run(recent.Pin))
	u.json = false
	u.sees("no session", u.run(recent.Pin, "nosuch"))
	u.sees("name the session", u.run(recent.Pin, "--remove"))
	u.run(recent.Delete, "s1", "--trash")
	u.sees("s0 s2", order())
	u.sees("no longer pinned: s1", u.run(recent.Pin, "--remove", "s1"))
	u.sees("it was not pinned: s2", u.run(recent.Pin, "--remove", "s2"))
	u.sees("no longer pinned: s0", u.run(recent.Pin, "--remove", "s0"))
	u.sees("s2 s0", order())
}

// What is resumed by its name is what the terminal goes on with.
func TestResumeLeavesACrumb(t *testing.T) {
	u := &user{t: t, store: stored(t, "/w", "/w", "/v"), env: map[string]string{
		"COPPICE_STATE": t.TempDir(), "COPPICE_HISTORY": "off", "TMUX_PANE": "%1",
	}}
	u.sees("session   s0", u.run(recent.Resume, "s0", "--terminal", "none"))
	u.sees("s1\n", u.run(recent.Continue, "--cwd", "/w"))
	u.sees("session   s0", u.run(recent.Resume, "s0"))
	u.sees("s0\n", u.run(recent.Continue, "--cwd", "/w"))
	u.sees("no session", u.run(recent.Resume, "nosuch"))
	u.sees("s0\n", u.run(recent.Continue, "--cwd", "/w"))
	u.sees("s1\n", u.run(recent.Continue, "--cwd", "/w", "--terminal", "other"))
	u.env["COPPICE_STATE"], u.env["HOME"] = "", ""
	u.json = true
	u.sees(`{"session":"s0"`, u.run(recent.Resume, "s0"))
}
