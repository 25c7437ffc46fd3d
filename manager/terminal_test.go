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
	if err := errors.Join(d.Forget("a"), d.Forget("a")); err != nil {
		t.Error(err)
	}
	if _, err := d.Get("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after forgetting: %v", err)
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
