package importer

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
)

const claudeID = "a0400000-0000-4000-8000-000000000040"

// claudeLine is a line of a session of Claude Code: a user's if n is odd, else an answer.
func claudeLine(n, parent int, more string) string {
	id := func(n int) string {
		if n == 0 {
			return "null"
		}
		return fmt.Sprintf(`"a0400000-0000-4000-8000-%012d"`, n)
	}
	message := fmt.Sprintf(`"type":"user","message":{"role":"user","content":"question %d"}`, n)
	if n%2 == 0 {
		message = fmt.Sprintf(`"type":"assistant","message":{"id":"msg_%d","type":"message","role":"assistant",`+
			`"model":"claude-opus-4-8","content":[{"type":"text","text":"answer %d"}],"stop_reason":"end_turn"}`, n, n)
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":%t,%s"cwd":"/w","sessionId":%q,"version":"2.1.200",%s,`+
		`"uuid":%s,"timestamp":"2026-07-01T10:00:%02d.000Z"}`+"\n",
		id(parent), more != "", more, claudeID, message, id(n), n)
}

// commits returns the sessions of a store, each with its newest commit.
func commits(t *testing.T, st *coppice.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[sum.ID] = fmt.Sprint(sum.Parent, " ", sum.Seq)
	}
	return all
}

// orders returns all orders of some texts.
func orders(list []string) (all [][]string) {
	if len(list) < 2 {
		return [][]string{list}
	}
	for i, first := range list {
		rest := append(append([]string{}, list[:i]...), list[i+1:]...)
		for _, o := range orders(rest) {
			all = append(all, append([]string{first}, o...))
		}
	}
	return all
}

// Whatever the order in which files are imported, one by one: to import them again, in any order, changes nothing.
func TestImportTwice(t *testing.T) {
	queued := `{"type":"queue-operation","operation":"enqueue","timestamp":"2026-07-01T10:00:00.000Z","sessionId":"` +
		claudeID + `","content":"question 1"}` + "\n"
	first, second := claudeLine(1, 0, "")+claudeLine(2, 1, ""), claudeLine(3, 2, "")+claudeLine(4, 3, "")
	agent := claudeLine(5, 0, `"agentId":"ab12",`) + claudeLine(6, 5, `"agentId":"ab12",`)
	half := claudeLine(1, 0, "") +
		strings.Replace(claudeLine(2, 1, ""), `"stop_reason":"end_turn"`, `"stop_reason":null`, 1)
	rest := strings.NewReplacer("answer 2", "and its end", "000000000002", "000000000009").Replace(claudeLine(2, 2, ""))
	name := claudeID + ".jsonl"
	for of, files := range map[string]map[string]string{
		"a queue, and its session": {"q/2bdae6f0-0000-4000-8000-00000000.jsonl": queued, "p/" + name: queued + first},
		"two parts":                {"p/" + name: first, "q/" + name: second},
		"three parts":              {"p/" + name: first, "q/" + name: second, "r/" + name: claudeLine(7, 4, "")},
		"an agent":                 {"p/" + name: first, "p/" + claudeID + "/subagents/agent-ab12.jsonl": agent},
		"an answer and its rest":   {"p/" + name: half, "q/" + name: half + rest},
		"a copy":                   {"p/" + name: first, "q/" + name: first},
		"a copy, and a longer one": {"p/" + name: first, "q/" + name: first, "r/" + name: first + second},
	} {
		t.Run(of, func(t *testing.T) {
			dir, at := t.TempDir(), time.Unix(1_800_000_000, 0)
			var paths []string
			for name, text := range files {
				at = at.Add(time.Minute)
				paths = append(paths, filepath.Join(dir, name))
				writeFile(t, paths[len(paths)-1], []byte(text), at)
			}
			all := orders(paths)
			for _, begun := range all {
				st := newStore(t)
				for _, p := range begun {
					take(t, st, growing(), p)
				}
				want := commits(t, st)
				for _, again := range all {
					for _, p := range again {
						take(t, st, growing(), p)
					}
					if diff := cmp.Diff(want, commits(t, st)); diff != "" {
						t.Fatalf("%q, then %q: %s", begun, again, diff)
					}
				}
				take(t, st, growing(), dir)
				if diff := cmp.Diff(want, commits(t, st)); diff != "" {
					t.Fatalf("%q, then the folder: %s", begun, diff)
				}
			}
		})
	}
}

// A part whose line before it is not in the session yet continues that session once the line is imported.
func TestPartWhoseBeginningGrows(t *testing.T) {
	dir, name := t.TempDir(), claudeID+".jsonl"
	old, next := filepath.Join(dir, "p", name), filepath.Join(dir, "q", name)
	begun := claudeLine(1, 0, "") + claudeLine(2, 1, "")
	long := strings.Repeat(" ", 1<<17) + "\n" // so that a reader of the grown file can begin in the middle
	for _, begun := range []string{begun, begun + long} {
		for range 2 {
			old, next = next, old // the newer part may have the id
			st := newStore(t)
			writeFile(t, old, []byte(begun), time.Unix(1_800_000_000, 0))
			writeFile(t, next, []byte(claudeLine(5, 4, "")), time.Unix(1_800_000_100, 0))
			take(t, st, growing(), dir)
			writeFile(t, old, []byte(begun+claudeLine(3, 2, "")+claudeLine(4, 3, "")), time.Unix(1_800_000_200, 0))
			is := take(t, st, growing(), old)[0]
			if !is.Grew || is.Added != 2 {
				t.Errorf("%+v", is)
			}
			var parts []checkpoint.Summary
			for sum, err := range st.List(t.Context(), coppice.ListOptions{Parent: is.Session}) {
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, sum)
			}
			if len(parts) != 1 || parts[0].First != "question 1" {
				t.Fatalf("parts of %s: %+v", is.Session, parts)
			}
			want := commits(t, st)
			take(t, st, growing(), next, old)
			take(t, st, growing(), dir)
			if diff := cmp.Diff(want, commits(t, st)); diff != "" || len(want) != 2 {
				t.Error(diff)
			}
		}
	}
}
