package server_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// picture returns the beginning of a picture of a kind, and a message that shows it.
func picture(magic string, n int) (data []byte, message string) {
	data = append([]byte(magic), bytes.Repeat([]byte{7}, n)...)
	return data, `{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` +
		base64.StdEncoding.EncodeToString(data) + `"}]}`
}

// sumOf returns the hash by which an image is served.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// An image is served by its hash, whole and in ranges, for ever; what is no picture is a download, and never a page.
func TestBlobs(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		for magic, kind := range map[string]string{
			"\x89PNG\r\n\x1a\n": "image/png", "GIF89a": "image/gif",
			"<svg onload=alert(1) xmlns='http://www.w3.org/2000/svg'>": "application/octet-stream",
			"<html><script>alert(1)</script>":                          "application/octet-stream",
		} {
			data, message := picture(magic, 50_000)
			r := s.do("POST", commits, `{"entries":[`+message+`]}`, "If-Match: *")
			id := r.want(t, 200)["entries"].([]any)[0].(string)
			sum := sumOf(data)
			at := "/v1/sessions/s/blobs/" + sum
			ref := fmt.Sprintf("coppice-blob:sha256:%s:%d", sum, len(data))
			for _, list := range []string{"entries/" + id + "?images=ref", "entries?limit=500&images=ref", "entries?images=ref&ids=" + id} {
				if in := s.do("GET", "/v1/sessions/s/"+list, ""); !strings.Contains(string(in.body), ref) {
					t.Errorf("%s: %.300s; want %s", list, in.body, ref)
				}
			}
			if in := s.do("GET", "/v1/sessions/s/entries/"+id, ""); !strings.Contains(string(in.body), message[20:]) {
				t.Errorf("the entry is not what was sent: %.200s", in.body)
			}
			got := s.do("GET", at, "")
			got.want(t, 200)
			h := got.Header
			if !bytes.Equal(got.body, data) || h.Get("Content-Type") != kind || !strings.Contains(h.Get("Cache-Control"), "immutable") ||
				h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") ||
				(kind == "application/octet-stream") != (h.Get("Content-Disposition") == "attachment") {
				t.Errorf("%q: %d bytes, %v", magic, len(got.body), h)
			}
			part := s.do("GET", at, "", "Range: bytes=2-5")
			if part.want(t, 206); !bytes.Equal(part.body, data[2:6]) {
				t.Errorf("range: %q", part.body)
			}
			s.do("GET", at, "", "If-None-Match: "+got.etag()).want(t, 304)
			if p := s.do("GET", at, "", "Range: bytes=60000-").want(t, 416); p["code"] != "usage" {
				t.Errorf("%v", p)
			}
		}
		for _, none := range []string{strings.Repeat("0", 64), "..%2fcheckpoint_latest", "x", strings.Repeat("A", 64)} {
			s.do("GET", "/v1/sessions/s/blobs/"+none, "").want(t, 404)
		}
		data, _ := picture("GIF89a", 50_000)
		s.create("other")
		s.do("GET", "/v1/sessions/other/blobs/"+sumOf(data), "").want(t, 404) // it is of s
	})
}

// A search finds what was committed before it, by whichever writer; a page continues where the last one ended.
func TestSearch(t *testing.T) {
	onEach(t, func(t *testing.T, storeURL string) {
		file := filepath.Join(t.TempDir(), "index.db")
		for name, index := range map[string]func(string) string{"memory": nil, "file": func(string) string { return file }} {
			s := newSite(t, storeURL, func(o *server.Options) { o.Index = server.Index{File: index} })
			session := "in-" + name
			s.create(session)
			for i := range 7 {
				s.do("POST", "/v1/sessions/"+session+"/commits", hello(fmt.Sprintf("needle %d %s", i, name)), "If-Match: *").want(t, 200)
				if n := len(s.do("GET", "/v1/search?limit=500&q=needle+"+name, "").want(t, 200)["matches"].([]any)); n != i+1 {
					t.Errorf("%s: %d matches after %d commits", name, n, i+1)
				}
			}
			other, err := s.st.Open(t.Context(), session, nil) // another writer
			if err != nil {
				t.Fatal(err)
			}
			aside := transcript.Draft{Type: "message", Body: json.RawMessage(`{"message":{"role":"user","content":"aside needle"}}`)}
			if _, err := other.Edit(t.Context(), other.Head().Entry, aside); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if got := pagesOf(t, s, "/v1/search?q=needle&session="+session, "matches", "entry"); len(got) != 8 {
				t.Errorf("%s: %v", name, got)
			}
			if got := pagesOf(t, s, "/v1/prompts?q=needle&session="+session, "prompts", "text"); len(got) != 8 ||
				!strings.HasPrefix(got[7], "needle 0") {
				t.Errorf("%s: %q", name, got)
			}
			found := s.do("GET", "/v1/search?q="+url.QueryEscape(`"aside needle"`), "").want(t, 200)["matches"].([]any)
			if m := found[0].(map[string]any); m["onHead"] != true || len(m["branches"].([]any)) == 0 {
				t.Errorf("%v", m)
			}
			for _, bad := range []string{"search", "search?q=", "search?q=re:(", "search?q=x&after=!", "prompts?q=re:(", "search?q=x&limit=501"} {
				s.do("GET", "/v1/"+bad, "").want(t, 400)
			}
		}
	})
}

// A deletion leaves nothing in the index, before the next search, also one that moves the session to the trash, and
// also where the server did not search since it started.
func TestDeletedFromTheIndex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	open := func(o *server.Options) {
		o.Index = server.Index{File: func(string) string { return file }}
		o.Trash = t.TempDir()
	}
	s := newSite(t, "file://"+t.TempDir(), open)
	for _, id := range []string{"a", "b", "c"} {
		s.create(id)
		s.do("POST", "/v1/sessions/"+id+"/commits", hello("zorbalonquist"), "If-Match: *").want(t, 200)
	}
	holds := func(want bool) {
		t.Helper()
		for _, suffix := range []string{"", "-wal"} {
			raw, err := os.ReadFile(file + suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if bytes.Contains(raw, []byte("zorbalonquist")) {
				if !want {
					t.Errorf("index.db%s holds it", suffix)
				}
				return
			}
		}
		if want {
			t.Error("it is not in the index")
		}
	}
	s.do("DELETE", "/v1/sessions/c", "", "If-Match: *").want(t, 200)
	if _, err := os.Stat(file); err == nil {
		t.Error("a deletion made an index")
	}
	s.do("GET", "/v1/search?q=zorbalonquist", "").want(t, 200)
	holds(true)
	again := siteOn(t, s.st, open)
	again.do("DELETE", "/v1/sessions/a", "", "If-Match: *").want(t, 200)
	again.do("DELETE", "/v1/sessions/b?trash=true", "", "If-Match: *").want(t, 200)
	holds(false)
}

// pagesOf returns a member of each item of all pages, of which none has an item of another.
func pagesOf(t *testing.T, s *site, path, name, member string) (all []string) {
	t.Helper()
	for next := ""; len(all) < 100; {
		doc := s.do("GET", path+"&limit=3&after="+next, "").want(t, 200)
		for _, item := range doc[name].([]any) {
			all = append(all, fmt.Sprint(item.(map[string]any)[member]))
		}
		var ok bool
		if next, ok = doc["next"].(string); !ok {
			break
		}
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v] {
			t.Errorf("%s: %s twice", path, v)
		}
		seen[v] = true
	}
	return all
}

// Searches at the same time find all that was committed before each of them.
func TestSearchesAtOnce(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			word := fmt.Sprintf("word%dend", i)
			for _, try := range []func() (reply, error){
				func() (reply, error) { return s.try(t.Context(), "POST", commits, hello(word), "If-Match: *") },
				func() (reply, error) { return s.try(t.Context(), "GET", "/v1/search?q="+word, "") },
			} {
				if r, err := try(); err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(r.body), "\"entr") {
					t.Errorf("%v, %s", err, r.body)
				}
			}
		})
	}
	wg.Wait()
}

// The usage of sessions is that of all branches, and is that of now when they changed.
func TestUsageOfAll(t *testing.T) {
	s := newSite(t, "mem:")
	spend := func(id string, tokens int) {
		s.do("POST", "/v1/sessions/"+id+"/commits", fmt.Sprintf(`{"entries":[{"role":"assistant","content":[],"model":"m","provider":"p",`+
			`"usage":{"input":%d,"output":1,"totalTokens":%d}}]}`, tokens, tokens+1), "If-Match: *").want(t, 200)
	}
	for _, id := range []string{"a", "b"} {
		s.create(id)
		spend(id, 10)
	}
	for round := range 3 {
		spend("b", 5)
		total := map[string]float64{}
		for _, u := range s.do("GET", "/v1/usage", "").want(t, 200)["sessions"].([]any) {
			doc := u.(map[string]any)
			total[doc["session"].(string)] = doc["usage"].(map[string]any)["total"].(float64)
		}
		if total["a"] != 11 || total["b"] != float64(11+6*(round+1)) {
			t.Errorf("%v", total)
		}
	}
	if n := len(s.do("GET", "/v1/usage?limit=1", "").ids(t, "sessions", "session")); n != 1 {
		t.Errorf("%d sessions", n)
	}
	s.do("GET", "/v1/usage?limit=0", "").want(t, 400)
}

// The usages of all sessions add up to what was used: an answer counts in the session that received it, on its own day.
func TestUsageOfCopies(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("a")
	spend := func(id string) {
		s.do("POST", "/v1/sessions/"+id+"/commits", `{"entries":[{"role":"assistant","content":[],"model":"m",`+
			`"usage":{"input":1,"output":1,"totalTokens":2,"cost":{"total":0.5}}}]}`, "If-Match: *").want(t, 200)
	}
	spend("a")
	s.do("POST", "/v1/sessions/a/fork", `{"id":"b"}`, "If-Match: *").want(t, 201)
	spend("b")
	type usage struct {
		Session   string
		Usage     struct{ Cost float64 }
		Inherited struct{ Cost float64 }
		Days      []struct {
			Day   string
			Usage struct{ Cost float64 }
		}
		Points []struct{ Cost float64 }
	}
	var all struct{ Sessions []usage }
	decodeInto(t, s.do("GET", "/v1/usage", "").body, &all)
	for _, u := range all.Sessions {
		var one usage
		decodeInto(t, s.do("GET", "/v1/sessions/"+u.Session+"/usage?points=true", "").body, &one)
		copied := map[string]float64{"b": 0.5}[u.Session]
		if n := len(one.Points); n != 1 || one.Points[0].Cost != 0.5 {
			t.Errorf("points %+v", one.Points)
		}
		one.Points = nil
		if !reflect.DeepEqual(u, one) || u.Usage.Cost != 0.5 || u.Inherited.Cost != copied ||
			len(u.Days) != 1 || u.Days[0].Usage.Cost != 0.5 {
			t.Errorf("%+v, alone %+v", u, one)
		}
	}
	var path usage
	decodeInto(t, s.do("GET", "/v1/sessions/b/usage?at=head", "").body, &path)
	if path.Usage.Cost != 0.5 || path.Inherited.Cost != 0.5 {
		t.Errorf("path %+v", path)
	}
	tag := s.do("GET", "/v1/sessions/b/usage", "").Header.Get("ETag")
	s.do("GET", "/v1/sessions/b/usage", "", "If-None-Match: "+tag).want(t, 304)
	s.do("DELETE", "/v1/sessions/a", "", "If-Match: *").want(t, 200)
	u := s.do("GET", "/v1/sessions/b/usage", "", "If-None-Match: "+tag).want(t, 200)
	if u["usage"].(map[string]any)["cost"] != 1.0 || u["inherited"] != nil {
		t.Errorf("without the original %v", u)
	}
}

// Of one path only what it has is summed: not what was spent on a branch that was left, nor what came after.
func TestUsageOfPath(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("a")
	spend := func(cost float64) string {
		return s.do("POST", "/v1/sessions/a/commits", fmt.Sprintf(`{"entries":[{"role":"assistant","content":[],"model":"m","provider":"p",`+
			`"usage":{"input":1,"output":1,"totalTokens":2,"cost":{"total":%g}}}]}`, cost), "If-Match: *").want(t, 200)["entries"].([]any)[0].(string)
	}
	first, second := spend(1), spend(2)
	s.do("POST", "/v1/sessions/a/branch", `{"entry":"`+first+`"}`, "If-Match: *").want(t, 200)
	spend(4)
	for at, want := range map[string]float64{"": 7, "head": 5, "seq:0": 0, "seq:1": 1, "entry:" + first: 1, "entry:" + second: 3} {
		doc := s.do("GET", "/v1/sessions/a/usage?at="+url.QueryEscape(at), "").want(t, 200)
		if got := doc["usage"].(map[string]any)["cost"].(float64); got != want {
			t.Errorf("at %q %g was spent, want %g", at, got, want)
		}
	}
	s.do("GET", "/v1/sessions/a/usage?at=head&points=true", "").want(t, 400)
	s.do("GET", "/v1/sessions/a/usage?at=seq:99", "").want(t, 422)
}

// How the cost of a session grew: a point at each commit that cost something, with all branches, as long as they are few.
func TestCostOverTime(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("a")
	spend := func(entries ...string) {
		s.do("POST", "/v1/sessions/a/commits", `{"entries":[`+strings.Join(entries, ",")+`]}`, "If-Match: *").want(t, 200)
	}
	const free, dear = `{"role":"user","content":"more"}`, `{"role":"assistant","content":[],"model":"m","provider":"p",` +
		`"usage":{"input":1,"output":1,"totalTokens":2,"cost":{"total":0.5}}}`
	points := func() string {
		text, err := json.Marshal(s.do("GET", "/v1/sessions/a/usage?points=true", "").want(t, 200)["points"])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	spend(free)
	if got := points(); got != "null" {
		t.Errorf("nothing was spent: %s", got)
	}
	spend(free, dear)
	spend(free)
	spend(dear, dear)
	for range 2 { // the second is remembered
		if got := points(); got != `[{"cost":0.5,"seq":2},{"cost":1.5,"seq":4}]` {
			t.Errorf("points %s", got)
		}
	}
	if is := s.do("GET", "/v1/sessions/a/usage", "").want(t, 200); is["points"] != nil || is["usage"].(map[string]any)["cost"] != 1.5 {
		t.Errorf("unasked: %v", is)
	}
	for range 600 {
		spend(dear)
	}
	all := s.do("GET", "/v1/sessions/a/usage?points=true", "").want(t, 200)["points"].([]any)
	if last := all[len(all)-1].(map[string]any); len(all) > 512 || last["cost"] != 301.5 || last["seq"] != 604.0 {
		t.Errorf("%d points, the last is %v", len(all), last)
	}
}

const piFile = `{"type":"session","version":3,"id":"from-pi","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}
{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}
`

// A file of another program becomes a session, once; what was added to it is appended, and it comes back byte for byte.
func TestImport(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		total := func(body string, params ...string) map[string]any {
			r := s.do("POST", "/v1/import?"+strings.Join(params, "&"), body, "Content-Type: application/octet-stream")
			return r.want(t, 200)["total"].(map[string]any)
		}
		if n := total(piFile); n["new"] != 1.0 {
			t.Errorf("%v", n)
		}
		if n := total(piFile); n["unchanged"] != 1.0 {
			t.Errorf("%v", n)
		}
		longer := piFile + `{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[]}}` + "\n"
		if n := total(longer); n["grown"] != 1.0 {
			t.Errorf("%v", n)
		}
		if n := total(longer, "again=true", "session=copy"); n["new"] != 1.0 {
			t.Errorf("%v", n)
		}
		for _, id := range []string{"from-pi", "copy"} {
			if got := s.do("GET", "/v1/sessions/"+id+"/original", ""); string(got.body) != longer {
				t.Errorf("%s: %s", id, got.body)
			}
		}
		s.do("POST", "/v1/import?again=true&session=copy", longer).want(t, 409)
		s.do("POST", "/v1/import", "no session").want(t, 415)
		s.do("POST", "/v1/import?format=pi&session=..", piFile).want(t, 400)
		s.do("POST", "/v1/import?format=other", piFile).want(t, 400)
	})
}

// Imports are bounded in size and in number, and leave nothing when their client is gone.
func TestImportLimits(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := newSite(t, "mem:", func(o *server.Options) { o.MaxImports, o.MaxImport = 1, 1000 })
	s.do("POST", "/v1/import", strings.Repeat("x", 1001)).want(t, 413)
	server.SetPatience(s.srv, time.Nanosecond)
	end := s.slowImport("/v1/import")
	s.do("POST", "/v1/import", piFile).want(t, 200) // the slow one holds none up
	other := s.slowImport("/v1/import")
	r := s.do("POST", "/v1/import", piFile)
	if r.want(t, 503)["code"] != "busy" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s", r.body)
	}
	end()
	other()
	for s.do("POST", "/v1/import", piFile).StatusCode != http.StatusOK {
		runtime.Gosched() // until they have ended
	}
	for { // until those that were cancelled have removed their files
		left, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		runtime.Gosched()
	}
}

// slowImport begins an import whose body does not end before end is called, which cancels it.
func (s *site) slowImport(path string) (end func()) {
	s.t.Helper()
	conn := s.dial(s.t.(*testing.T))
	head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" +
		"Expect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 100 ") { // its body is awaited
		s.t.Fatalf("%q, %v", line, err)
	}
	return func() { _ = conn.Close() }
}

// A session that was deleted into the trash is gone from the store, and can be restored from the folder.
func TestTrash(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, "mem:", func(o *server.Options) { o.Trash = dir })
	head := s.create("s")
	s.do("DELETE", "/v1/sessions/s?trash=1", "").want(t, 428)
	s.do("DELETE", "/v1/sessions/s?trash=1", "", `If-Match: "other"`).want(t, 412)
	s.do("DELETE", "/v1/sessions/s?trsh=1", "", "If-Match: "+head).want(t, 400)
	name := s.do("DELETE", "/v1/sessions/s?trash=1", "", "If-Match: "+head).want(t, 200)["trash"].(string)
	s.do("GET", "/v1/sessions/s", "").want(t, 410)
	bin := manager.Trash{Path: dir, Now: func() time.Time { return time.Unix(0, 0) }}
	back, err := bin.Restore(t.Context(), s.st, name)
	if err != nil {
		t.Fatal(err)
	}
	if back.Info().Title != "a session" {
		t.Errorf("%+v", back.Info())
	}
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
	plain := newSite(t, "mem:")
	plain.create("s")
	plain.do("DELETE", "/v1/sessions/s?trash=1", "", "If-Match: *").want(t, 400)
	plain.do("GET", "/v1/sessions/s", "").want(t, 200)
}

// A compaction is one commit on the head that the client names. One that lost leaves nothing that another commit stores.
func TestCompact(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		made := s.create("s")
		s.do("POST", "/v1/sessions/s/compact", `{"summary":"so far"}`, "If-Match: "+made).want(t, 422)
		for i := range 4 {
			s.do("POST", commits, hello(fmt.Sprint("m", i)), "If-Match: *").want(t, 200)
		}
		s.do("POST", "/v1/sessions/s/compact", `{"summary":"so far"}`, "If-Match: "+made).want(t, 412)
		s.do("POST", "/v1/sessions/s/compact", `{"summary":""}`, "If-Match: *").want(t, 400)
		s.do("POST", "/v1/sessions/s/compact", `{"summary":"x","from":"none"}`, "If-Match: *").want(t, 422)
		before := s.do("GET", "/v1/sessions/s", "")
		doc := s.do("POST", "/v1/sessions/s/compact", `{"summary":"so far","keep":1}`, "If-Match: "+before.etag()).want(t, 200)
		if doc["replaced"] != 3.0 || doc["entry"] == "" {
			t.Errorf("%v", doc)
		}
		var list []map[string]any
		raw := s.do("GET", "/v1/sessions/s/context", "")
		var body struct{ Messages json.RawMessage }
		if err := json.Unmarshal(raw.body, &body); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body.Messages, &list); err != nil || len(list) != 2 || list[0]["role"] != "compactionSummary" {
			t.Errorf("%v, %s", err, raw.body)
		}
		s.do("POST", "/v1/sessions/s/compact", `{"summary":"again"}`, "If-Match: *").want(t, 422)
	})
}

// Every format in which the command line writes sessions is served, and what it cannot express is in the trailer.
func TestExports(t *testing.T) {
	s := newSite(t, "mem:")
	s.do("POST", "/v1/import", piFile).want(t, 200)
	s.do("POST", "/v1/sessions/from-pi/commits", hello("more"), "If-Match: *").want(t, 200)
	for format, want := range map[string]string{
		"pi": `"id":"u1"`, "original": piFile, "omp": `"hi"`, "atomic": `"hi"`, "operator": `"hi"`, "claude-code": `"hi"`,
		"codex": `"hi"`, "markdown": "hi", "html": "hi",
	} {
		r := s.do("GET", "/v1/sessions/from-pi/export?format="+format, "")
		if r.want(t, 200); !strings.Contains(string(r.body), want) || !strings.Contains(string(r.body), "more") {
			t.Errorf("%s: %.400s", format, r.body)
		}
		if format == "codex" {
			if losses := r.Trailer.Get("Coppice-Losses"); losses != "" && !json.Valid([]byte(losses)) {
				t.Errorf("%q", losses)
			}
		}
	}
	s.do("GET", "/v1/sessions/from-pi/export?format=other", "").want(t, 400)
	s.do("GET", "/v1/sessions/none/export", "").want(t, 404)
}

// What was asked is counted, by operation and status, and each client that may read may see it.
func TestMetrics(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	for range 3 {
		s.do("GET", "/v1/sessions/s/resume", "").want(t, 200)
	}
	s.do("GET", "/v1/sessions/none/resume", "").want(t, 404)
	s.do("GET", "/v1/sessions/"+url.PathEscape(`"} evil{`)+"/nothing", "")
	r := s.do("GET", "/metrics", "")
	r.want(t, 200)
	for _, line := range []string{
		`coppice_requests_total{operation="resume",status="200"} 3`,
		`coppice_requests_total{operation="resume",status="404"} 1`,
		`coppice_request_duration_seconds_count{operation="resume"} 4`,
		"coppice_sessions_open_for_writing 0", "coppice_event_streams 0", "process_resident_memory_bytes",
	} {
		if !strings.Contains(string(r.body), line) {
			t.Errorf("no %s in\n%s", line, r.body)
		}
	}
	if strings.Contains(string(r.body), "evil") {
		t.Error("a path became a label")
	}
}
