package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A bit that is flipped in the middle of a log hides nothing that is intact: entries, rows, map and commits have what
// is before and after it, and report the damage.
func TestReadsPastDamage(t *testing.T) {
	for _, kind := range []string{"append", "replace"} {
		t.Run(kind, func(t *testing.T) {
			replaced, appended := memory.New(), memory.NewAppender()
			b, again := backend.Backend(replaced), backend.Backend(replaced.Share())
			if kind == "append" {
				b, again = appended, appended.Share()
			}
			writer, _ := newFaulty(t, b)
			all := longer(writer, 300) // so many that an object store seals the first ones
			flipped := ""
			for info, err := range b.List(t.Context(), backend.ListOptions{Prefix: "sessions/s/transcript"}) {
				testutil.OK(t, err)
				p, _, err := b.Get(t.Context(), info.Key, backend.Range{})
				testutil.OK(t, err)
				p[len(p)/2] ^= 4
				testutil.Must(b.Put(t.Context(), info.Key, p, backend.Cond{}))(t)
				flipped = info.Key
				break
			}
			s, _ := newFaulty(t, again) // in the memory of the first one nothing is damaged
			list := s.do("GET", "/v1/sessions/s/entries?path=all&limit=all", "").want(t, 200)
			checkPast(t, flipped, list["entries"].([]any), all, list["error"])
			page := s.do("GET", "/v1/sessions/s/entries?path=all&limit=50", "").want(t, 200)
			if len(page["entries"].([]any)) != 50 || page["next"] == nil {
				t.Errorf("a page: %d entries, next %v", len(page["entries"].([]any)), page["next"])
			}
			log := s.do("GET", "/v1/sessions/s/commits?limit=500", "").want(t, 200)
			if n := len(log["commits"].([]any)); n < 290 || n > 301 {
				t.Errorf("%d commits of 301", n)
			}
			drawn := s.do("GET", "/v1/sessions/s/map", "").want(t, 200)
			if kind == "append" && !strings.Contains(fmt.Sprint(drawn["cause"]), flipped) {
				t.Errorf("the map does not report the damage: %v", drawn["cause"])
			}
			s.do("GET", "/v1/sessions/s/rows?count=50", "").want(t, 200)
			s.do("GET", "/v1/sessions/s/branches", "").want(t, 200)
			for _, format := range []string{"pi", "codex", "markdown", "html"} {
				r := s.do("GET", "/v1/sessions/s/export?format="+format, "")
				r.want(t, 200)
				if len(r.body) < 4000 || !strings.Contains(r.Trailer.Get("Coppice-Losses"), "damaged") {
					t.Errorf("as %s: %d bytes, losses %q", format, len(r.body), r.Trailer.Get("Coppice-Losses"))
				}
			}
		})
	}
}

// Commits that the log on a disk has lost are reported by what reads the session, and nothing is written then.
func TestLostCommits(t *testing.T) {
	dir := t.TempDir()
	first := newSite(t, "file://"+dir)
	longer(first, 4)
	testutil.OK(t, first.srv.Close())
	testutil.OK(t, first.st.Close()) // with a checkpoint of commit 4
	logs := testutil.Must(filepath.Glob(filepath.Join(dir, "sessions/s/transcript/*.jsonl")))(t)
	if len(logs) != 1 {
		t.Fatal(logs)
	}
	raw := testutil.Must(os.ReadFile(logs[0]))(t)
	lines := strings.SplitAfter(string(raw), "\n")
	testutil.OK(t, os.WriteFile(logs[0], []byte(strings.Join(lines[:len(lines)-1-4], "")), 0o600)) // two turns
	s := newSite(t, "file://"+dir)
	for _, path := range []string{"s", "s/resume", "s/rows"} {
		if got := s.do("GET", "/v1/sessions/"+path, "").want(t, 200); got["missing"] != 4.0 {
			t.Errorf("%s: missing %v", path, got["missing"])
		}
	}
	listed := s.do("GET", "/v1/sessions", "").want(t, 200)["sessions"].([]any)[0].(map[string]any)
	if listed["damaged"] != true || listed["missing"] != 4.0 {
		t.Errorf("listed: %v", listed)
	}
	if n := len(s.do("GET", "/v1/sessions/s/entries", "").want(t, 200)["entries"].([]any)); n != 2 {
		t.Errorf("%d entries are left", n)
	}
	if p := s.do("POST", commits, hello("more"), "If-Match: *").want(t, 500); p["code"] != "corrupt" {
		t.Errorf("a write: %v", p)
	}
}

func checkPast(t *testing.T, flipped string, got []any, all []string, failed any) {
	t.Helper()
	have := map[any]bool{}
	for _, e := range got {
		have[e.(map[string]any)["id"]] = true
	}
	lost := 0
	for _, id := range all {
		if !have[id] {
			lost++
		}
	}
	if lost > 80 || !have[all[0]] || !have[all[len(all)-1]] {
		t.Errorf("%d of %d entries are missing in %d", lost, len(all), len(got))
	}
	if p, ok := failed.(map[string]any); !ok || p["code"] != "corrupt" || !strings.Contains(fmt.Sprint(p), flipped) {
		t.Errorf("the damage is not reported: %v", failed)
	}
}
