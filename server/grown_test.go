package server_test

import (
	"fmt"
	"testing"
)

// A commit that grows from an earlier entry names the line that it leaves, as a move does; one that continues from the
// head, or from the end of another line, leaves none. A repeat with its key has the first answer.
func TestCommitsNameWhatTheyLeave(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		say := func(id, parent string, more ...string) map[string]any {
			line := fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00Z","message":`+
				`{"role":"user","content":"word"}}`, id, parent)
			return s.do("POST", commits, `{"entries":[`+line+`]}`, append(more, "If-Match: *")...).want(t, 200)
		}
		branches := func() string {
			r := s.do("GET", "/v1/sessions/s/branches", "")
			return fmt.Sprint(r.ids(t, "branches", "name"), r.ids(t, "branches", "head"))
		}
		for _, c := range []struct{ id, parent, left, branches string }{
			{"a", "null", "", "[main] [a]"},
			{"b", `"a"`, "", "[main] [b]"},
			{"c", `"a"`, "main-2", "[main main-2] [c b]"},
			{"d", `"c"`, "", "[main main-2] [d b]"},
			{"e", `"b"`, "main-3", "[main main-2 main-3] [e b d]"},
			{"f", `"d"`, "main-4", "[main main-2 main-3 main-4] [f b d e]"},
			{"g", "null", "main-5", "[main main-2 main-3 main-4 main-5] [g b d e f]"},
		} {
			r := say(c.id, c.parent, "Idempotency-Key: "+c.id)
			if left, _ := r["left"].(string); left != c.left || branches() != c.branches || r["head"] != c.id {
				t.Errorf("%s: left %q, want %q; head %v; %s, want %s", c.id, left, c.left, r["head"], branches(),
					c.branches)
			}
			again := say(c.id, c.parent, "Idempotency-Key: "+c.id)
			if again["repeated"] != true || again["left"] != r["left"] || again["head"] != r["head"] {
				t.Errorf("%s again: %v, was %v", c.id, again, r)
			}
		}
	})
}

// The answer to a commit names its entries that the session had, whether others were stored with them or not, also
// where it is a repeat.
func TestAnswersNameKnownEntries(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		send := func(policy, key string, ids ...string) map[string]any {
			body := ""
			for i, id := range ids {
				if i > 0 {
					body += ","
				}
				body += fmt.Sprintf(`{"type":"custom","id":%q,"customType":"x","data":%q}`, id, policy)
			}
			headers := []string{"If-Match: *"}
			if key != "" {
				headers = append(headers, "Idempotency-Key: "+key)
			}
			return s.do("POST", commits, `{"entries":[`+body+`],"onKnownId":"`+policy+`"}`, headers...).want(t, 200)
		}
		for _, c := range []struct {
			policy, key string
			ids         []string
			known       string
			repeated    bool
		}{
			{"ignore", "", []string{"a", "b"}, "<nil>", false},
			{"ignore", "", []string{"a", "c"}, "[a]", false},
			{"ignore", "", []string{"c", "a"}, "[c a]", true},
			{"ignore", "k1", []string{"b", "d", "a"}, "[b a]", false},
			{"ignore", "k1", []string{"b", "d", "a"}, "[b a]", true},
			{"amend", "k2", []string{"a", "e", "b"}, "[a b]", false},
			{"amend", "k2", []string{"a", "e", "b"}, "[a b]", true},
			{"amend", "", []string{"a"}, "[a]", true},
			{"error", "k3", []string{"f"}, "<nil>", false},
			{"error", "k3", []string{"f"}, "<nil>", true},
		} {
			r := send(c.policy, c.key, c.ids...)
			if fmt.Sprint(r["known"]) != c.known || fmt.Sprint(r["entries"]) != fmt.Sprint(c.ids) ||
				(r["repeated"] == true) != c.repeated {
				t.Errorf("%s %v: %v, want known %s", c.policy, c.ids, r, c.known)
			}
		}
	})
}
