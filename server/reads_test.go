package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/server"
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

// A page can begin at any entry of its path, in either direction, and a path can go on to the newest leaf below its entry.
func TestPagesFromAnEntry(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		old := longer(s, 8)
		r := s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+old[3]+`","message":{"role":"user","content":"x"}}`,
			"If-Match: *").want(t, 200)
		edited := r["head"].(string)
		page := func(query string) string {
			return strings.Join(s.do("GET", "/v1/sessions/s/entries?"+query, "").ids(t, "entries", "id"), " ")
		}
		list := func(ids ...string) string { return strings.Join(ids, " ") }
		for query, want := range map[string]string{
			"from=" + old[1]:                                list(old[1], old[2], edited),
			"order=desc&limit=2&from=" + old[1]:             list(old[1], old[0]),
			"path=" + old[6] + "&from=" + old[5]:            list(old[5], old[6]),
			"path=all&limit=2&from=" + old[6]:               list(old[6], old[7]),
			"below=true&path=" + old[3] + "&from=" + old[6]: list(old[6], old[7]),
			"below=true&path=" + old[2] + "&from=" + old[2]: list(old[2], edited),
			"below=true&order=desc&limit=1&path=" + old[3]:  old[7],
		} {
			if got := page(query); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		from := s.do("GET", "/v1/sessions/s/entries?limit=2&path="+old[7]+"&from="+old[3], "").want(t, 200)
		next, prev := fmt.Sprint(from["next"]), fmt.Sprint(from["prev"])
		if got := page("limit=2&path=" + old[7] + "&after=" + next); got != list(old[5], old[6]) {
			t.Errorf("next: %s", got)
		}
		if got := page("limit=2&path=" + old[7] + "&before=" + prev); got != list(old[1], old[2]) {
			t.Errorf("prev: %s", got)
		}
		s.do("GET", "/v1/sessions/s/entries?from="+old[7], "").want(t, 422) // on another branch
		s.do("GET", "/v1/sessions/s/entries?below=true&path=nowhere", "").want(t, 422)
		s.do("GET", "/v1/sessions/s/entries?below=true", "").want(t, 400)
		s.do("GET", "/v1/sessions/s/entries?below=true&path=all", "").want(t, 400)
		s.do("GET", "/v1/sessions/s/entries?from="+old[1]+"&after="+next, "").want(t, 400)
	})
}

// Pages of lines have what those of a document have: the last line is where to go on, and is absent at the end.
func TestPagesOfLines(t *testing.T) {
	s := newSite(t, "mem:")
	longer(s, 12)
	s.create("other")
	for path, id := range map[string]string{"/v1/sessions/s/entries": "id", "/v1/sessions/s/commits": "seq", "/v1/sessions": "session"} {
		name := path[strings.LastIndex(path, "/")+1:]
		whole := s.do("GET", path, "").ids(t, name, id)
		var got []string
		for next, pages := "", 0; pages < 20; pages++ {
			doc := s.do("GET", path+"?limit=1&after="+next, "").want(t, 200)
			r := s.do("GET", path+"?limit=1&after="+next, "", "Accept: application/x-ndjson")
			r.want(t, 200)
			lines := strings.Split(strings.TrimSuffix(string(r.body), "\n"), "\n")
			var item, more map[string]any
			if err := json.Unmarshal([]byte(lines[0]), &item); err != nil {
				t.Fatalf("%s: %v", lines[0], err)
			}
			if len(lines) > 1 {
				if err := json.Unmarshal([]byte(lines[1]), &more); err != nil || len(lines) > 2 {
					t.Fatalf("%q: %v", lines, err)
				}
			}
			got = append(got, fmt.Sprint(item[id]))
			if more["next"] != doc["next"] || more["prev"] != doc["prev"] {
				t.Errorf("%s: %v, and as lines %v", path, doc, more)
			}
			var ok bool
			if next, ok = more["next"].(string); !ok {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("%s: %v, want %v", path, got, whole)
		}
	}
}

// A difference has no more entries than a page, however far two times are from each other, and counts the others.
func TestDiffIsBounded(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 12)
		for query, more := range map[string][2]any{
			"a=seq:0&limit=5": {nil, 7.0}, "a=seq:12&b=seq:2&limit=5": {5.0, nil}, "a=seq:0": {nil, nil}, "a=seq:7&limit=5": {nil, nil},
		} {
			m := s.do("GET", "/v1/sessions/s/diff?"+query, "").want(t, 200)["messages"].(map[string]any)
			if m["moreA"] != more[0] || m["moreB"] != more[1] {
				t.Errorf("%s: %v and %v more", query, m["moreA"], m["moreB"])
			}
			if only := append(m["onlyA"].([]any), m["onlyB"].([]any)...); query != "a=seq:0" && len(only) != 5 || len(only) > 12 {
				t.Errorf("%s: %d entries", query, len(only))
			} else if first := only[0].(map[string]any)["id"]; strings.HasPrefix(query, "a=seq:0") && first != ids[0] {
				t.Errorf("%s: the first entry is %v", query, first)
			}
		}
		s.do("GET", "/v1/sessions/s/diff?a=seq:0&limit=501", "").want(t, 400)
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
		s.do("POST", "/v1/sessions/s/commits", `{"entries":[{"role":"assistant","provider":"nimbus","content":[`+
			`{"type":"thinking","thinking":"hm","thinkingSignature":"c2ln"},{"type":"text","text":"x"}]}]}`,
			"If-Match: *").want(t, 200)
		for query, want := range map[string]bool{"": false, "&vendor=nimbus": true} {
			con := s.do("GET", "/v1/sessions/s/context?provider=anthropic"+query, "")
			con.want(t, 200)
			if got := strings.Contains(string(con.body), `"signature":"c2ln"`); got != want {
				t.Errorf("%s: thinking is sent: %v", query, got)
			}
		}
		s.do("GET", "/v1/sessions/s/context?vendor=nimbus", "").want(t, 400)
	})
}

// A page of commits begins at the commit that is in force at a target, and leads on in both directions.
func TestCommitsAtTarget(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 12)
		s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"late"}`, "If-Match: *").want(t, 200)
		snap := s.do("GET", "/v1/sessions/s/snapshots", "").ids(t, "snapshots", "id")[0]
		time := s.do("GET", "/v1/sessions/s/commits/5", "").want(t, 200)["time"].(string)
		at := func(target string) string { return "/v1/sessions/s/commits?limit=3&at=" + target }
		for target, want := range map[string]string{
			"entry:" + ids[4]: "[5 4 3]", "seq:7": "[7 6 5]", "seq:0": "[0]", "head": "[12 11 10]", "tag:late": "[12 11 10]",
			"snap:" + snap: "[12 11 10]", "main": "[12 11 10]",
		} {
			if got := s.do("GET", at(target), "").ids(t, "commits", "seq"); fmt.Sprint(got) != want {
				t.Errorf("at=%s: %v, want %s", target, got, want)
			}
		}
		if got := s.do("GET", at(time), "").ids(t, "commits", "time")[0]; got != time {
			t.Errorf("at=%s: a commit of %s", time, got)
		}
		page := s.do("GET", at("entry:"+ids[4]), "").want(t, 200)
		older := s.do("GET", fmt.Sprint("/v1/sessions/s/commits?limit=3&after=", page["next"]), "")
		newer := s.do("GET", fmt.Sprint("/v1/sessions/s/commits?limit=3&before=", page["prev"]), "")
		if a, b := older.ids(t, "commits", "seq"), newer.ids(t, "commits", "seq"); fmt.Sprint(a, b) != "[2 1 0] [8 7 6]" {
			t.Errorf("older %v, newer %v", a, b)
		}
		s.do("GET", at("entry:none"), "").want(t, 422)
		s.do("GET", at("seq:99"), "").want(t, 422)
		s.do("GET", at("seq:x"), "").want(t, 400)
		s.do("GET", at("seq:7&after="+page["next"].(string)), "").want(t, 400)
	})
}

// No GET changes a byte of a store, nor adds a folder: of one whose server has ended, and of one whose server died in
// the middle of a commit, for which the next writer has something to tidy up.
func TestGetsWriteNothing(t *testing.T) {
	dir, died := t.TempDir(), t.TempDir()
	s := newSite(t, "file://"+dir)
	ids := longer(s, 5)
	s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"t"}`, "If-Match: *").want(t, 200)
	data, message := picture("GIF89a", 50_000)
	s.do("POST", commits, `{"entries":[`+message+`],"docs":{"d":1}}`, "If-Match: *").want(t, 200)
	mirror(t, dir, died, func(string) bool { return true })
	logs, err := filepath.Glob(filepath.Join(died, "sessions", "s", "transcript", "*.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	torn, err := os.OpenFile(logs[len(logs)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = torn.WriteString(`{"type":"message","id":"torn`)
	if err = errors.Join(err, torn.Close(), s.srv.Close()); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"ended": dir, "died": died} {
		t.Run(name, func(t *testing.T) { getsWriteNothing(t, dir, ids, sumOf(data)) })
	}
}

func getsWriteNothing(t *testing.T, dir string, ids []string, image string) {
	reader := newSite(t, "file://"+dir)
	before := filesOf(t, dir)
	for _, op := range readDescription(t).operations {
		if op.method != http.MethodGet {
			continue
		}
		path := strings.NewReplacer("{id}", "s", "{entry}", ids[2], "{seq}", "3", "{name}", "d",
			"{sha256}", image).Replace(op.path)
		queries := map[string][]string{
			"events": {"after=1&wait=1"}, "diff": {"a=seq:1", "a=seq:1&b=tag:t"}, "search": {"q=m", "q=re:m[0-9]"},
			"context":      {"", "at=seq:2", "provider=anthropic", "provider=gemini"},
			"state":        {"", "at=seq:2", "at=tag:t"},
			"listEntries":  {"", "path=all&order=desc", "ids=" + ids[1], "images=ref", "limit=all&type=message"},
			"queryEntries": {"", "order=desc&limit=1", "meta.x=y&match.type=%22label%22"},
			"rows":         {"", "search=m1", "filter=all&fold=" + ids[1]},
			"export":       {"", "format=markdown", "format=html", "format=claude-code"},
			"listSessions": {"", "q=m&meta.x=y", "docs=d"},
		}[op.OperationID]
		if queries == nil {
			queries = []string{""}
		}
		for _, query := range queries {
			if r := reader.do("GET", path+"?"+query, ""); r.StatusCode != http.StatusOK {
				t.Errorf("%s?%s: %d %.300s", path, query, r.StatusCode, r.body)
			}
			reader.do("GET", strings.Replace(path, "/s/", "/none/", 1)+"?"+query, "") // whatever it is answered
			if op.OperationID != "events" {
				reader.do("HEAD", path+"?"+query, "").want(t, 200)
			}
		}
	}
	if after := filesOf(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if err := reader.srv.Close(); err != nil { // what a server leaves for its end is none of reading either
		t.Fatal(err)
	}
	if err := reader.st.Close(); err != nil {
		t.Fatal(err)
	}
	if after := filesOf(t, dir); after != before {
		t.Errorf("before:\n%s\nafter Close:\n%s", before, after)
	}
}

// filesOf describes every file and every folder below one.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			fmt.Fprintf(&b, "%s/\n", path)
			return nil
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

// The drawn tree comes in stretches; a view stays what it was when the session continues, until it is gone.
func TestRowsOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 30)
		first := s.do("GET", "/v1/sessions/s/rows?from=10&count=5", "").want(t, 200)
		rows := first["rows"].([]any)
		if first["total"] != float64(30) || len(rows) != 5 || rows[0].(map[string]any)["id"] != ids[10] {
			t.Errorf("%v", first)
		}
		s.do("POST", commits, hello("more"), "If-Match: *").want(t, 200)
		view := "view=" + first["view"].(string)
		if same := s.do("GET", "/v1/sessions/s/rows?"+view, "").want(t, 200); same["total"] != float64(30) {
			t.Errorf("%v", same["total"])
		}
		m := s.do("GET", "/v1/sessions/s/map?buckets=7&"+view, "").want(t, 200)
		sum := 0.0
		for _, b := range m["buckets"].([]any) {
			sum += b.(map[string]any)["count"].(float64)
		}
		if sum != 30 || len(m["buckets"].([]any)) != 7 {
			t.Errorf("%v", m)
		}
		s.do("GET", "/v1/sessions/s/rows?view=none", "").want(t, 410)
		found := s.do("GET", "/v1/sessions/s/rows?search=m29", "").want(t, 200)
		if found["total"] != float64(1) {
			t.Errorf("%v", found)
		}
	})
}

// Drawn trees are kept up to a number of bytes; those that were used the longest time ago go first.
func TestViewsAreBounded(t *testing.T) {
	s := newSite(t, "mem:")
	longer(s, 30)
	server.SetViewBytes(s.srv, 150*37) // two trees of 30 entries and 31 commits
	view := map[string]string{}
	for _, filter := range []string{"all", "default", "all", "no-tools"} {
		r := s.do("GET", "/v1/sessions/s/rows?filter="+filter, "").want(t, 200)
		view[filter] = r["view"].(string)
	}
	for filter, status := range map[string]int{"default": 410, "all": 200, "no-tools": 200} {
		s.do("GET", "/v1/sessions/s/rows?view="+view[filter], "").want(t, status)
	}
	server.SetViewBytes(s.srv, 1)
	only := s.do("GET", "/v1/sessions/s/rows?filter=user-only", "").want(t, 200)["view"].(string)
	s.do("GET", "/v1/sessions/s/rows?view="+only, "").want(t, 200)
	s.do("GET", "/v1/sessions/s/rows?view="+view["all"], "").want(t, 410)
}

// The history of a value names the commits that changed it, and no others.
func TestBlame(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		for _, state := range []string{
			`{"plan":{"step":1}}`, `{"plan":{"step":1},"x":1}`, `{"plan":{"step":2}}`, `{"y":[7]}`,
		} {
			s.do("POST", commits, `{"state":`+state+`}`, "If-Match: *").want(t, 200)
		}
		steps := s.do("GET", "/v1/sessions/s/blame?path=/plan/step", "")
		if got := steps.ids(t, "changes", "seq"); fmt.Sprint(got) != "[4 3 1]" {
			t.Errorf("%v", got)
		}
		if got := s.do("GET", "/v1/sessions/s/blame?path=/y/0", "").ids(t, "changes", "value"); fmt.Sprint(got) != "[7]" {
			t.Errorf("%v", got)
		}
		if got := s.do("GET", "/v1/sessions/s/blame?path=/y/00", "").ids(t, "changes", "value"); len(got) != 0 {
			t.Errorf("%v", got)
		}
		s.do("GET", "/v1/sessions/s/blame?path=plan", "").want(t, 400)
	})
}

// Files are for downloading: no page of this site shows them.
func TestFilesOverHTTP(t *testing.T) {
	s := newSite(t, "mem:")
	longer(s, 3)
	for path, holds := range map[string]string{
		"original": `"m2"`, "export": `"m2"`, "export?format=markdown": "m2", "export?format=html": "<!doctype html>",
	} {
		r := s.do("GET", "/v1/sessions/s/"+path, "")
		r.want(t, 200)
		if !strings.Contains(strings.ToLower(string(r.body)), holds) || r.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %v %.300s", path, r.Header, r.body)
		}
	}
	s.do("GET", "/v1/sessions/none/export", "").want(t, 404)
	s.do("POST", "/v1/sessions/s/verify", `{"deep":true}`).want(t, 200)
	f := s.do("POST", "/v1/sessions/s/fork", `{"to":"seq:2","id":"f"}`, "If-Match: *")
	f.want(t, 201)
	if f.Header.Get("Location") != "/v1/sessions/f" {
		t.Errorf("%s", f.Header.Get("Location"))
	}
	if got := s.do("GET", "/v1/sessions/f/entries", "").ids(t, "entries", "id"); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// A list that meets damage after its first item ends with the error, as described.
func TestListEndsWithAnError(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, "file://"+dir)
	s.create("s")
	for i := range 300 { // of which the checkpoint has 256
		s.do("POST", commits, hello(fmt.Sprint(i)), "If-Match: *").want(t, 200)
	}
	hurt(t, dir, "s", `"content":"2"`)
	d := readDescription(t)
	r := s.do("GET", commits+"?limit=500", "")
	doc := r.want(t, 200)
	if problem, ok := doc["error"].(map[string]any); !ok || problem["code"] != "corrupt" || len(doc["commits"].([]any)) < 60 {
		t.Fatalf("%.300s", r.body)
	}
	if err := d.faults(d.operation(t, "listCommits"), r); err != nil {
		t.Error(err)
	}
	for _, op := range d.operations { // of all lists
		if op.Responses["200"] == nil {
			continue
		}
		content := op.Responses["200"].Content
		if _, list := content["application/x-ndjson"]; !list || op.OperationID == "export" {
			continue
		}
		of := d.schemas[strings.TrimPrefix(content["application/json"].Schema.Ref, "#/components/schemas/")]
		if p := of.Properties["error"]; p == nil || p.Ref != "#/components/schemas/Problem" {
			t.Errorf("%s: error is %+v", op.OperationID, p)
		}
	}
}

// hurt changes a byte of a text in the log of a session below a folder.
func hurt(t *testing.T, dir, id, text string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "sessions", id, "transcript", "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	raw, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.Index(raw, []byte(text))+len(text)-2] ^= 1
	if err := os.WriteFile(logs[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A session that cannot be read whole is marked in the usage of all, and hides no other one.
func TestUsageOfDamaged(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, "file://"+dir)
	for id, commits := range map[string]int{"a": 300, "hurt": 300, "lost": 70, "z": 300} { // of "lost" no checkpoint
		s.create(id)
		for i := range commits {
			s.do("POST", "/v1/sessions/"+id+"/commits", hello(fmt.Sprint(i)), "If-Match: *").want(t, 200)
		}
	}
	hurt(t, dir, "hurt", `"content":"2"`)
	hurt(t, dir, "lost", `"content":"2"`)
	r := s.do("GET", "/v1/usage", "")
	r.want(t, 200)
	var doc struct {
		Sessions []struct {
			Session string
			Damaged bool
			Entries int
		}
	}
	decodeInto(t, r.body, &doc)
	if len(doc.Sessions) != 4 {
		t.Fatalf("%s", r.body)
	}
	for _, u := range doc.Sessions {
		if bad := u.Session == "hurt" || u.Session == "lost"; u.Damaged != bad || bad == (u.Entries == 300) {
			t.Errorf("%+v", u)
		}
	}
	d := readDescription(t)
	if err := d.faults(d.operation(t, "allUsage"), r); err != nil {
		t.Error(err)
	}
	s.do("GET", "/v1/sessions/hurt/usage", "").want(t, 500)
}

// application/x-ndjson is what a client has to ask for by name, and does not refuse with q=0.
func TestAcceptOfLines(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	for accept, lines := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "application/x-ndjson": true, "text/html, Application/X-NDJSON ;q=0.5": true,
		"application/x-ndjson;q=0": false, "application/json, application/x-ndjson; q=0.000": false, "application/x-ndjson2": false,
		"application/x-ndjson;charset=utf-8;q=1": true, "application/json, application/x-ndjson;q=0.5": true,
	} {
		want := "application/json"
		if lines {
			want = "application/x-ndjson"
		}
		if got := s.do("GET", "/v1/sessions", "", "Accept: "+accept).Header.Get("Content-Type"); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
