package server_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longer makes a session of n messages, and returns the ids of its entries.
func longer(s *site, n int) (ids []string) {
	s.create("s")
	for i := range n {
		doc := s.do("POST", commits, hello(fmt.Sprintf("m%d", i)), "If-Match: *").want(s.t, 200)
		ids = append(ids, doc["entries"].([]any)[0].(string))
	}
	return ids
}

func (r reply) ids(t testing.TB, name, id string) (ids []string) {
	t.Helper()
	for _, e := range r.want(t, 200)[name].([]any) {
		ids = append(ids, fmt.Sprint(e.(map[string]any)[id]))
	}
	return ids
}

// Pages in either direction have every entry once, and the way back has what the way there had.
func TestPagesOfEntries(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		all := longer(s, 23)
		for _, how := range []string{"", "path=all&", "order=desc&"} {
			var got []string
			var pages []reply
			for next := ""; len(pages) < 10; {
				r := s.do("GET", "/v1/sessions/s/entries?"+how+"limit=5&after="+next, "")
				pages = append(pages, r)
				got = append(got, r.ids(t, "entries", "id")...)
				var ok bool
				if next, ok = r.want(t, 200)["next"].(string); !ok {
					break
				}
			}
			want := strings.Join(all, " ")
			if strings.Contains(how, "desc") {
				var turned []string
				for i := range all {
					turned = append(turned, all[len(all)-1-i])
				}
				want = strings.Join(turned, " ")
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%q: %v", how, got)
			}
			prev := pages[2].want(t, 200)["prev"].(string)
			back := s.do("GET", "/v1/sessions/s/entries?"+how+"limit=5&before="+prev, "")
			if a, b := back.ids(t, "entries", "id"), pages[1].ids(t, "entries", "id"); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%q: back %v, there %v", how, a, b)
			}
		}
		nd := s.do("GET", "/v1/sessions/s/entries?limit=500", "", "Accept: application/x-ndjson")
		lines := strings.Split(strings.TrimSpace(string(nd.body)), "\n")
		if len(lines) != 23 || !json.Valid([]byte(lines[7])) {
			t.Errorf("%d lines", len(lines))
		}
		some := s.do("GET", "/v1/sessions/s/entries?ids="+all[9]+","+all[2], "").ids(t, "entries", "id")
		if fmt.Sprint(some) != fmt.Sprint([]string{all[9], all[2]}) {
			t.Errorf("%v", some)
		}
		s.do("GET", "/v1/sessions/s/entries?after=%21", "").want(t, 400)
		one := s.do("GET", "/v1/sessions/s/entries/"+all[4], "").want(t, 200)
		if one["id"] != all[4] {
			t.Errorf("%v", one)
		}
		s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+all[4]+`","message":{"role":"user","content":"x"}}`,
			"If-Match: *").want(t, 200)
		v := s.do("GET", "/v1/sessions/s/versions/"+all[4], "").want(t, 200)
		if len(v["versions"].([]any)) != 2 || v["at"] != float64(0) {
			t.Errorf("%v", v)
		}
	})
}

// Pages of commits go back to seq 0 and forward again.
func TestPagesOfCommits(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		longer(s, 12)
		var got []string
		next, last := "", reply{}
		for range 10 {
			last = s.do("GET", "/v1/sessions/s/commits?limit=5&after="+next, "")
			got = append(got, last.ids(t, "commits", "seq")...)
			var ok bool
			if next, ok = last.want(t, 200)["next"].(string); !ok {
				break
			}
		}
		if fmt.Sprint(got) != "[12 11 10 9 8 7 6 5 4 3 2 1 0]" {
			t.Errorf("%v", got)
		}
		prev := last.want(t, 200)["prev"].(string)
		newer := s.do("GET", "/v1/sessions/s/commits?limit=5&before="+prev, "").ids(t, "commits", "seq")
		if fmt.Sprint(newer) != "[7 6 5 4 3]" {
			t.Errorf("%v", newer)
		}
		c := s.do("GET", "/v1/sessions/s/commits/7", "")
		if c.want(t, 200)["seq"] != float64(7) || !strings.Contains(c.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s %s", c.body, c.Header.Get("Cache-Control"))
		}
		con := s.do("GET", "/v1/sessions/s/context?at=seq:2&provider=anthropic", "").want(t, 200)
		if con["provider"] != "anthropic" || len(con["messages"].([]any)) == 0 {
			t.Errorf("%v", con)
		}
	})
}

// No GET changes a byte of the store.
func TestGetsWriteNothing(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, "file://"+dir)
	ids := longer(s, 5)
	s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"t"}`, "If-Match: *").want(t, 200)
	if err := s.srv.Close(); err != nil { // what the writer leaves for later is done
		t.Fatal(err)
	}
	reader := newSite(t, "file://"+dir)
	raw, err := reader.srv.Description()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	for path, ops := range doc.Paths {
		if ops["get"] == nil {
			continue
		}
		full := strings.NewReplacer("{id}", "s", "{entry}", ids[2], "{seq}", "3").Replace(path)
		switch {
		case strings.HasSuffix(path, "/events"):
			full += "?after=1&wait=1"
		case strings.HasSuffix(path, "/diff"):
			full += "?a=seq:1"
		}
		reader.do("GET", full, "").want(t, 200)
	}
	if after := filesOf(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// filesOf describes every file below a folder.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %x\n", path, info.ModTime(), raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
