package manager_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
)

var crumbStart = testutil.Shifted(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))

func dir(t *testing.T, now *time.Time) *manager.Crumbs {
	t.Helper()
	return &manager.Crumbs{Path: filepath.Join(t.TempDir(), "below", "terminals"), Now: func() time.Time { return *now }}
}

func put(t *testing.T, d *manager.Crumbs, id, session string) {
	t.Helper()
	if err := d.Put(id, manager.Crumb{Cwd: "/w", Session: session}); err != nil {
		t.Fatal(err)
	}
}

func TestEachTerminalHasItsCrumb(t *testing.T) {
	now := crumbStart
	d := dir(t, &now)
	odd := []string{"a", "A", "a/b", "../a", "%3", "tty é", ".", "con"}
	for i, id := range odd {
		put(t, d, id, fmt.Sprint("s", i))
	}
	put(t, d, "a", "later")
	for i, id := range odd {
		want := fmt.Sprint("s", i)
		if id == "a" {
			want = "later"
		}
		if c, err := d.Get(id); err != nil || c.Session != want || c.Cwd != "/w" || !c.Time.Equal(crumbStart) {
			t.Errorf("%q: %+v, %v", id, c, err)
		}
	}
	if files, err := os.ReadDir(d.Path); err != nil || len(files) != len(odd) {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, id := range []string{"", strings.Repeat("x", 101)} {
		if err := d.Put(id, manager.Crumb{Session: "s"}); err == nil {
			t.Errorf("terminal %.10q was taken", id)
		}
	}
}

func TestStaleAndDamagedCrumbsCountAsNone(t *testing.T) {
	now := crumbStart
	d := dir(t, &now)
	put(t, d, "old", "s")
	now = crumbStart.Add(91 * 24 * time.Hour)
	put(t, d, "torn", "s")
	files, err := filepath.Glob(filepath.Join(d.Path, "torn*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, damage := range []string{"", `{"cwd":"/w","ses`, "null", "[]", strings.Repeat(" ", 1<<20)} {
		if err := os.WriteFile(files[0], []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"old", "torn", "never"} {
			if c, err := d.Get(id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %.20q: %+v, %v", id, damage, c, err)
			}
		}
	}
	put(t, d, "torn", "s2")
	if c, err := d.Get("torn"); err != nil || c.Session != "s2" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestTheNumberOfCrumbsIsBounded(t *testing.T) {
	now := crumbStart
	d := dir(t, &now)
	for i := range 300 {
		put(t, d, fmt.Sprint("t", i), "s")
	}
	files, err := os.ReadDir(d.Path)
	if err != nil || len(files) > 256 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if _, err := d.Get("t299"); err != nil {
		t.Errorf("the newest is gone: %v", err)
	}
}

// A reader finds a whole crumb while others write.
func TestCrumbsAreReplacedAsAWhole(t *testing.T) {
	now := crumbStart
	d := dir(t, &now)
	put(t, d, "x", "first")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if err := d.Put("x", manager.Crumb{Cwd: strings.Repeat("d", 500*w), Session: fmt.Sprint(w, i)}); err != nil {
					t.Error(err)
				}
				if c, err := d.Get("x"); err != nil || c.Session == "" {
					t.Errorf("%+v, %v", c, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestID(t *testing.T) {
	env := map[string]string{"TERM_SESSION_ID": "w0", "TMUX_PANE": "%3"}
	get := func(name string) string { return env[name] }
	if id := manager.TerminalID(get); id != "tmux_pane-%3" {
		t.Errorf("id %q", id)
	}
	clear(env)
	if id := manager.TerminalID(get); id != "" {
		t.Errorf("id %q", id)
	}
}

// A session is forgotten in every terminal, also by what a crash left; other sessions and stores stay.
func TestForgetSession(t *testing.T) {
	now := crumbStart
	d := dir(t, &now)
	mine := func(name string) bool { return name == "mine" }
	if n, err := d.ForgetSession("s1", mine); n != 0 || err != nil {
		t.Errorf("no folder: %d, %v", n, err)
	}
	for id, c := range map[string]manager.Crumb{
		"a": {Session: "s1", Store: "mine"}, "b": {Session: "s1", Store: "mine"},
		"c": {Session: "s12", Store: "mine"}, "d": {Session: "s1", Store: "other"},
	} {
		if err := d.Put(id, c); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".new-1": `{"cwd":"/w","session":"s1",`, ".new-2": `{"cwd":"/w"`} {
		if err := os.WriteFile(filepath.Join(d.Path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.ForgetSession("s1", mine); n != 3 || err != nil {
		t.Errorf("%d crumbs, %v", n, err)
	}
	var left []string
	files, err := os.ReadDir(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		left = append(left, f.Name())
	}
	if got := strings.Join(left, " "); got != ".new-2 c.json d.json" {
		t.Errorf("left: %s", got)
	}
	if _, err := d.ForgetSession("", mine); err == nil {
		t.Error("a session without an id is taken")
	}
}
