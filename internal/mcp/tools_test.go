package mcp_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a tool returns is what the HTTP service answers.
func TestToolsAnswerAsTheService(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	s := d.session("one", 3)
	ids := d.turn(s, map[string]any{"turn": 9}, "left?", "right.")
	if _, err := s.Label(t.Context(), ids[0], "crossroads"); err != nil {
		t.Fatal(err)
	}
	d.session("two", 1)
	const one = "/v1/sessions/one"
	for _, c := range []struct {
		tool, args, path string
	}{
		{"search_history", `{"query":"question","session":"one"}`, "/v1/search?q=question&session=one&limit=10"},
		{"search_history", `{"query":"question","limit":1}`, "/v1/search?q=question&limit=1"},
		{"list_sessions", `{"limit":1}`, "/v1/sessions?limit=1"},
		{"list_sessions", `{"query":"two"}`, "/v1/sessions?q=two&limit=20"},
		{"list_commits", `{"session":"one","at":"seq:2"}`, one + "/commits?at=seq:2&limit=20"},
		{"get_state", `{"session":"one","at":"seq:2"}`, one + "/state?at=seq:2"},
		{"what_changed", `{"session":"one","a":"seq:1","b":"seq:2"}`, one + "/diff?a=seq:1&b=seq:2&limit=20"},
		{"value_history", `{"session":"one","path":"/turn"}`, one + "/blame?path=/turn&limit=20"},
		{"read_entry", `{"session":"one","entry":"` + ids[1] + `"}`, one + "/entries/" + ids[1] + "?images=ref"},
	} {
		var args map[string]any
		if err := json.Unmarshal([]byte(c.args), &args); err != nil {
			t.Fatal(err)
		}
		texts, failed := d.use(c.tool, args)
		if want := timeless(d.get(c.path)); failed || len(texts) != 1 || timeless(texts[0]) != want {
			t.Errorf("%s %s: %q, want %s", c.tool, c.args, texts, want)
		}
	}
	doc := d.doc("list_branches", map[string]any{"session": "one"})
	if n := len(doc["branches"].([]any)); n != 1 || !strings.Contains(fmt.Sprint(doc["labels"]), "crossroads") {
		t.Errorf("%v", doc)
	}
}

// timeless removes what differs from answer to answer: counts of requests.
func timeless(doc string) string {
	return regexp.MustCompile(`"io":\{[^}]*\}`).ReplaceAllString(doc, "")
}

// read follows the pages of read_session, and returns the texts in the order of the conversation, and the pages.
func (d *desk) read(args map[string]any) (texts []string, pages int) {
	d.Helper()
	for pages < 100 {
		doc, page := d.doc("read_session", args), []string(nil)
		for _, v := range doc["entries"].([]any) {
			page = append(page, v.(map[string]any)["text"].(string))
		}
		if pages++; args["following"] == true {
			texts = append(texts, page...)
		} else {
			texts = append(page, texts...)
		}
		if doc["next"] == nil {
			return texts, pages
		}
		args["from"] = doc["next"]
	}
	d.Fatal("the pages do not end")
	return nil, 0
}

// The pages of a session are the conversation of a path: each entry once, in order.
func TestReadSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	s := d.session("one", 30)
	fork := d.turn(s, nil, "left?", "yes, left.")
	d.turn(s, nil, "and then?", "straight on.")
	if _, err := s.Branch(t.Context(), fork[0], nil); err != nil {
		t.Fatal(err)
	}
	d.turn(s, nil, "or right?", "yes, right.")
	var base []string
	for i := range 30 {
		base = append(base, fmt.Sprintf("question %d", i), fmt.Sprintf("answer %d", i))
	}
	for _, c := range []struct {
		args  map[string]any
		want  []string
		pages int
	}{
		{map[string]any{}, append(slices.Clone(base), "left?", "or right?", "yes, right."), 4},
		{map[string]any{"limit": 100}, append(slices.Clone(base), "left?", "or right?", "yes, right."), 1},
		{map[string]any{"entry": fork[1], "limit": 7}, append(slices.Clone(base), "left?", "yes, left."), 9},
		{
			map[string]any{"entry": fork[1], "following": true, "limit": 2},
			[]string{"yes, left.", "and then?", "straight on."},
			2,
		},
	} {
		c.args["session"] = "one"
		texts, pages := d.read(c.args)
		if !slices.Equal(texts, c.want) || pages != c.pages {
			t.Errorf("%v: %d pages of %q, want %d of %q", c.args, pages, texts, c.pages, c.want)
		}
	}
}

// Long texts are cut, with their length; a page of them ends where its bytes do.
func TestReadSessionIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	s := d.session("one", 0)
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("%d", i), strings.Repeat("ü\"", 2000))
		d.turn(s, nil, want[2*i], want[2*i+1])
	}
	texts, pages := d.read(map[string]any{"session": "one", "limit": 100})
	if len(texts) != len(want) || pages < 2 {
		t.Fatalf("%d texts on %d pages", len(texts), pages)
	}
	for i, text := range texts {
		if text != want[i][:min(len(want[i]), 2048)] {
			t.Errorf("text %d: %.20q", i, text)
		}
	}
	doc := d.doc("read_session", map[string]any{"session": "one", "limit": 1})
	if bytes := doc["entries"].([]any)[0].(map[string]any)["bytes"]; bytes != 6000.0 {
		t.Errorf("%v bytes", bytes)
	}
}

// A long state comes in pieces, which together are all of it.
func TestPieces(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	s := d.session("one", 0)
	d.turn(s, map[string]any{"plan": strings.Repeat("äöü€", 20000)}, "long?", "yes.")
	whole, n := "", 0
	for whole == "" || len(whole) > 0 && n < 100 {
		texts, failed := d.use("get_state", map[string]any{"session": "one", "offset": len(whole)})
		if failed || len(texts) != 2 {
			t.Fatalf("%q", texts)
		}
		whole += texts[0]
		if n++; !strings.Contains(texts[1], "continues") {
			break
		}
	}
	if timeless(whole) != timeless(d.get("/v1/sessions/one/state")) || n < 5 {
		t.Errorf("%d pieces of %d bytes", n, len(whole))
	}
	texts, failed := d.use("get_state", map[string]any{"session": "one", "offset": len(whole) + 1})
	if !failed || !strings.Contains(texts[0], "offset") {
		t.Errorf("%q", texts)
	}
}

// Without the permission tools that write are neither listed nor called.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, write := range []bool{false, true} {
		d := newDesk(t, write)
		s := d.session("one", 1)
		before, first := s.Head().Commit, entryAt(t, d, 0)
		d.turn(s, nil, "and more?", "more.")
		result, _ := d.ask("tools/list", nil)
		var writers []string
		for _, v := range result["tools"].([]any) {
			one := v.(map[string]any)
			if one["annotations"].(map[string]any)["readOnlyHint"] == false {
				writers = append(writers, one["name"].(string))
			}
		}
		args := map[string]any{"session": "one", "entry": first, "label": "begin"}
		_, code := d.ask("tools/call", map[string]any{"name": "label_entry", "arguments": args})
		if !write {
			if len(writers) > 0 || code != -32602 || strings.Contains(d.get("/v1/sessions/one/labels"), "begin") {
				t.Errorf("%q, error %d", writers, code)
			}
			continue
		}
		if !slices.Equal(writers, []string{"label_entry", "begin_branch"}) || code != 0 ||
			!strings.Contains(d.get("/v1/sessions/one/labels"), "begin") {
			t.Errorf("%q, error %d", writers, code)
		}
		move := map[string]any{"session": "one", "entry": first, "name": "again", "commit": before}
		if texts, failed := d.use("begin_branch", move); !failed || !strings.Contains(texts[0], "conflict") {
			t.Errorf("a branch on an old commit: %q", texts)
		}
		delete(move, "commit")
		if doc := d.doc("begin_branch", move); doc["branch"] != "again" || doc["head"] != first {
			t.Errorf("%v", doc)
		}
	}
}

// entryAt returns the id of an entry of session one by its place.
func entryAt(t *testing.T, d *desk, i int) string {
	t.Helper()
	doc := d.doc("read_session", map[string]any{"session": "one"})
	return doc["entries"].([]any)[i].(map[string]any)["entry"].(string)
}

// What a model gets wrong is told to it, as the result of the call.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	d.session("one", 1)
	for _, c := range []struct{ tool, args, want string }{
		{"search_history", `{}`, "query is missing"},
		{"search_history", `{"query":null}`, "query is missing"},
		{"search_history", `{"query":""}`, "no words"},
		{"search_history", `{"query":7}`, "want a string"},
		{"search_history", `{"query":"x","limit":0}`, "1 to 50"},
		{"search_history", `{"query":"x","limit":51}`, "1 to 50"},
		{"search_history", `{"query":"x","limit":1.5}`, "want an integer"},
		{"search_history", `{"query":"x","where":"here"}`, `no argument "where"`},
		{"search_history", `{"query":"re:("}`, "usage"},
		{"read_session", `{"session":"one","following":"yes"}`, "true or false"},
		{"read_session", `{"session":"one","following":true}`, "path=ENTRY"},
		{"read_session", `{"session":"none"}`, "not-found"},
		{"read_session", `{"session":"../one"}`, "usage"},
		{"read_session", `{"session":".."}`, "not-found"},
		{"read_entry", `{"session":"one","entry":"none"}`, "not-found"},
		{"get_state", `{"session":"one","at":"seq:99"}`, "no-entry"},
		{"begin_branch", `{"session":"one","entry":"none"}`, "no-entry"},
	} {
		var args map[string]any
		if err := json.Unmarshal([]byte(c.args), &args); err != nil {
			t.Fatal(err)
		}
		texts, failed := d.use(c.tool, args)
		if !failed || !strings.Contains(texts[0], c.want) {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, texts, c.want)
		}
	}
}

// Sessions are listed as resources, page by page; a session is its newest part, an entry its line.
func TestResources(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	for i := range 60 {
		d.session(fmt.Sprintf("s%d", i), 1)
	}
	d.session("one", 3)
	seen, cursor := map[string]bool{}, ""
	for page := range 3 {
		result, code := d.ask("resources/list", map[string]any{"cursor": cursor})
		if code != 0 {
			t.Fatalf("error %d", code)
		}
		for _, v := range result["resources"].([]any) {
			seen[v.(map[string]any)["uri"].(string)] = true
		}
		cursor, _ = result["nextCursor"].(string)
		if cursor == "" != (page == 1) || page > 1 {
			t.Fatalf("page %d ends with %q", page, cursor)
		}
		if cursor == "" {
			break
		}
	}
	if len(seen) != 61 || !seen["coppice://sessions/one"] {
		t.Errorf("%d resources", len(seen))
	}
	entry := entryAt(t, d, 1)
	for uri, want := range map[string]string{
		"coppice://sessions/one":                  "answer 2",
		"coppice://sessions/one/entries/" + entry: `"id":"` + entry + `"`,
	} {
		result, code := d.ask("resources/read", map[string]any{"uri": uri})
		if code != 0 || !strings.Contains(fmt.Sprint(result["contents"]), want) {
			t.Errorf("%s: %v, error %d", uri, result, code)
		}
	}
	for uri, want := range map[string]int{
		"coppice://sessions/none": -32002, "coppice://sessions/one/entries/none": -32002, "coppice://sessions/": -32002,
		"coppice://sessions/one/entries/": -32002, "coppice://sessions/one/else": -32002, "file:///etc/passwd": -32002,
		"coppice://sessions/%zz": -32002, "": -32002,
	} {
		if _, code := d.ask("resources/read", map[string]any{"uri": uri}); code != want {
			t.Errorf("%q: error %d, want %d", uri, code, want)
		}
	}
	if result, _ := d.ask("resources/templates/list", nil); len(result["resourceTemplates"].([]any)) != 2 {
		t.Errorf("%v", result)
	}
}
