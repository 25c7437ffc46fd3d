package cli

import (
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
)

// stored makes a store with a session for each directory, and returns its path.
func stored(t *testing.T, cwds ...string) string {
	t.Helper()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := coppice.New(b, &coppice.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	for i, cwd := range cwds {
		s, err := st.Create("s"+string(rune('0'+i)), &coppice.SessionOptions{Cwd: cwd})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), entry.User("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), coppice.Turn{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// user runs commands in one environment.
type user struct {
	t     *testing.T
	env   map[string]string
	store string
	json  bool
}

// run runs a command and returns what it shows.
func (u *user) run(args ...string) string {
	u.t.Helper()
	if u.json {
		args = append([]string{"--json"}, args...)
	}
	stdout, stderr, _ := callWith(u.t, u.env, u.store, "", args...)
	return stdout + stderr
}

func (u *user) sees(want, got string) {
	u.t.Helper()
	if !strings.Contains(got, want) {
		u.t.Errorf("got %q, want %q", got, want)
	}
}

// A pinned session is picked first, is marked, and stays so under another name of the store; its pin can be taken
// off when it is gone.
func TestPins(t *testing.T) {
	u := &user{t: t, env: map[string]string{"COPPICE_STATE": t.TempDir(), "COPPICE_HISTORY": "off"}, store: stored(t, "/w", "/w", "/w")}
	order := func() string {
		var ids []string
		for line := range strings.Lines(u.run("pick")) {
			ids = append(ids, line[:2])
		}
		return strings.Join(ids[1:], " ")
	}
	u.sees("s2 s1 s0", order())
	u.sees("pinned s1", u.run("pick", "--pin", "s1"))
	u.sees("pinned s0", u.run("pick", "--pin", "s0"))
	u.sees("s1 s0 s2", order())
	u.sees("(pinned) hello", u.run("pick"))
	u.store = "file://" + u.store
	u.sees("s1 s0 s2", order())
	u.json = true
	u.sees(`"pinned":true`, u.run("pick", "--limit", "1"))
	u.sees(`{"pins":[{"session":"s0","time":"`, u.run("pick", "--pin", "s0"))
	u.json = false
	u.sees("no session", u.run("pick", "--pin", "nosuch"))
	u.sees("use --pin or --unpin alone", u.run("pick", "--unpin", "s0", "x"))
	mine := u.env["COPPICE_STATE"]
	u.env["COPPICE_STATE"] = t.TempDir() // on another machine, which does not know of the pin
	u.run("delete", "s1", "--trash")
	u.env["COPPICE_STATE"] = mine
	u.sees("s0 s2", order())
	u.sees("no longer pinned: s1", u.run("pick", "--unpin", "s1"))
	u.sees("was not pinned: s2", u.run("pick", "--unpin", "s2"))
	u.sees("no longer pinned: s0", u.run("pick", "--unpin", "s0"))
	u.sees("s2 s0", order())
}
