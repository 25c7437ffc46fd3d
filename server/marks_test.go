package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// mark is one of a page's marks.
type mark struct {
	ID                    string
	Version, Of, Children int
	Versions              []string
	Label, AmendedBy      string
	OnHead                bool
}

// marked returns the ids and the marks of a page.
func (s *site) marked(query string) (ids []string, marks []mark) {
	s.t.Helper()
	r := s.do("GET", "/v1/sessions/s/entries?marks=true&"+query, "")
	ids = r.ids(s.t, "entries", "id")
	var doc struct{ Marks []mark }
	decodeInto(s.t, r.body, &doc)
	return ids, doc.Marks
}

// A page of entries has the versions, the continuations and the label of each, as versions/{entry} has them, in whichever
// way the page is read.
func TestMarks(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 6)
		edit := func(entry, text string) string {
			return s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+entry+`","message":{"role":"user","content":"`+text+`"}}`,
				"If-Match: *").want(t, 200)["head"].(string)
		}
		edit(ids[2], "another third")
		again := edit(ids[2], "one more third")
		edit(ids[0], "another root")
		s.do("POST", "/v1/sessions/s/label", `{"entry":"`+ids[1]+`","label":"good"}`, "If-Match: *").want(t, 200)
		s.do("POST", "/v1/sessions/s/switch", `{"to":"`+ids[5]+`"}`, "If-Match: *").want(t, 200)

		for _, query := range []string{
			"order=desc", "order=asc", "path=all&limit=500", "path=" + again, "ids=" + ids[4] + "," + ids[2] + "," + again,
			"limit=2&order=desc&after=" + s.next("limit=2&order=desc"), "limit=2&before=" + s.next("limit=4"),
		} {
			page, marks := s.marked(query)
			if len(page) == 0 || len(marks) != len(page) {
				t.Fatalf("%s: %d entries, %d marks", query, len(page), len(marks))
			}
			for i, m := range marks {
				v := s.do("GET", "/v1/sessions/s/versions/"+page[i], "").want(t, 200)
				var want []string
				for _, n := range v["versions"].([]any) {
					want = append(want, n.(map[string]any)["id"].(string))
				}
				if m.ID != page[i] || m.Of != len(want) || fmt.Sprint(m.Versions) != fmt.Sprint(want) ||
					m.Version != int(v["at"].(float64))+1 {
					t.Errorf("%s: %+v of entry %s, versions %v at %v", query, m, page[i], want, v["at"])
				}
				if m.OnHead != slices.Contains(ids, m.ID) {
					t.Errorf("%s: %+v, the path to the head is %v", query, m, ids)
				}
			}
		}
		_, marks := s.marked("")
		got := map[string][3]any{}
		for _, m := range marks {
			got[m.ID] = [3]any{fmt.Sprintf("%d/%d", m.Version, m.Of), m.Children, m.Label}
		}
		want := map[string][3]any{
			ids[0]: {"1/2", 1, ""}, ids[1]: {"1/1", 3, "good"}, ids[2]: {"1/3", 1, ""}, ids[3]: {"1/1", 1, ""},
			ids[4]: {"1/1", 1, ""}, ids[5]: {"1/1", 0, ""},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if r := s.do("GET", "/v1/sessions/s/entries", ""); strings.Contains(string(r.body), "marks") {
			t.Errorf("marks that no one asked for: %s", r.body)
		}
		s.do("GET", "/v1/sessions/s/entries?marks=true", "", "Accept: application/x-ndjson").want(t, 400)
	})
}

// next returns the cursor of the page after one.
func (s *site) next(query string) string {
	s.t.Helper()
	return s.do("GET", "/v1/sessions/s/entries?"+query, "").want(s.t, 200)["next"].(string)
}

// The mark of an entry that was amended names the amendment, of which the line of the entry is.
func TestMarksOfAmendments(t *testing.T) {
	s := newSite(t, "mem:")
	ids := longer(s, 2)
	s.do("POST", commits, `{"onKnownId":"amend","entries":[{"type":"message","id":"`+ids[0]+
		`","message":{"role":"user","content":"redacted"}}]}`, "If-Match: *").want(t, 200)
	_, marks := s.marked("")
	if len(marks) != 2 || marks[0].AmendedBy == "" || marks[1].AmendedBy != "" {
		t.Errorf("%+v", marks)
	}
}

// Of an entry with very many versions a mark has those around it, and their number.
func TestMarksOfManyVersions(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	lines := make([]string, 200)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"type":"message","id":"v%03d","parentId":null,"message":{"role":"user","content":"x"}}`, i)
	}
	s.do("POST", commits, `{"entries":[`+strings.Join(lines, ",")+`]}`, "If-Match: *").want(t, 200)
	for entry, first := range map[string]string{"v000": "v000", "v100": "v068", "v199": "v136"} {
		_, marks := s.marked("ids=" + entry)
		m := marks[0]
		if m.Of != 200 || len(m.Versions) != 64 || m.Versions[0] != first ||
			m.Versions[m.Version-1-int(number(first))] != entry {
			t.Errorf("%+v", m)
		}
	}
}

// number returns the number in an id of TestMarksOfManyVersions.
func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "v%d", &n)
	return n
}

func decodeInto(t testing.TB, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}
