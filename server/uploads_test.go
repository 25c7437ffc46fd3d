package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/server"
)

// An image is uploaded as bytes, and a commit refers to it: what is stored is what base64 in the entry would be. A
// reference to an image that the session has needs no upload, and one to any other is refused.
func TestUploads(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		data, shown := picture("GIF89a", 50_000)
		sum := sumOf(data)
		ref := fmt.Sprintf("coppice-blob:sha256:%s:%d", sum, len(data))
		entry := `{"role":"user","content":[{"type":"image","mimeType":"image/gif","data":"` + ref + `"},` +
			`{"type":"text","text":"coppice-blob:=:sha256"}]}`
		commit := func(status int) map[string]any {
			t.Helper()
			return s.do("POST", commits, `{"images":"ref","entries":[`+entry+`]}`, "If-Match: *").want(t, status)
		}
		if p := commit(422); p["code"] != "no-blob" {
			t.Errorf("before the upload: %v", p)
		}
		up := func(id, sum, kind string, status int) {
			t.Helper()
			r := s.do("PUT", "/v1/sessions/"+id+"/blobs/"+sum, string(data), "Content-Type: "+kind)
			if r.StatusCode != status {
				t.Errorf("upload: status %d, want %d: %s", r.StatusCode, status, r.body)
			}
		}
		up("s", strings.Repeat("0", 64), "application/octet-stream", 400)
		up("s", sum, "text/plain", 415)
		up("none", sum, "image/gif", 404)
		up("s", sum, "application/octet-stream", 204)
		first := commit(200)["entries"].([]any)[0].(string)
		line := string(s.do("GET", "/v1/sessions/s/entries/"+first, "").body)
		whole := base64.StdEncoding.EncodeToString(data)
		if !strings.Contains(line, whole) || !strings.Contains(line, `"coppice-blob:sha256"`) {
			t.Errorf("stored %.300s", line)
		}
		plain := s.do("POST", commits, `{"entries":[`+shown+`]}`, "If-Match: *").want(t, 200)
		if plain["seq"] == nil {
			t.Error("no receipt")
		}
		other := siteOn(t, s.st) // which has no upload: the session has the image
		other.do("POST", commits, `{"images":"ref","entries":[`+entry+`]}`, "If-Match: *").want(t, 200)
		s.do("POST", commits, `{"images":"refs"}`, "If-Match: *").want(t, 400)
		// Without the member a reference is text like any other.
		text := s.do("POST", commits, `{"entries":[`+entry+`]}`, "If-Match: *").entries(t)[0]
		line = string(s.do("GET", "/v1/sessions/s/entries/"+text, "").body)
		if !strings.Contains(line, ref) {
			t.Errorf("stored %.300s", line)
		}
	})
}

// An upload is in the server that got it: a commit at another server of the store is refused, with what to do, and
// stored once the image is there too. From then on every server has it.
func TestUploadsAtTwoServers(t *testing.T) {
	url := "file://" + t.TempDir()
	one, two := newSite(t, url), newSite(t, url)
	one.create("s")
	data, _ := picture("GIF89a", 50_000)
	upload := func(s *site) {
		t.Helper()
		s.do("PUT", "/v1/sessions/s/blobs/"+sumOf(data), string(data), "Content-Type: image/gif").want(t, 204)
	}
	commit := func(s *site, status int) map[string]any {
		t.Helper()
		body := fmt.Sprintf(`{"images":"ref","entries":[{"role":"user","content":[{"type":"image",`+
			`"mimeType":"image/gif","data":"coppice-blob:sha256:%s:%d"}]}]}`, sumOf(data), len(data))
		return s.do("POST", commits, body, "If-Match: *", "Idempotency-Key: k").want(t, status)
	}
	upload(one)
	p := commit(two, 422)
	if p["code"] != "no-blob" || !strings.Contains(fmt.Sprint(p["hint"]), "to the server that gets the commit") {
		t.Errorf("%v", p)
	}
	upload(two)
	if seq := commit(two, 200)["seq"]; seq != 1.0 {
		t.Errorf("stored as commit %v", seq)
	}
	if r := commit(one, 200); r["repeated"] != true {
		t.Errorf("the same commit at the other server: %v", r)
	}
}

// Uploads have a time and a bound, and the oldest goes first.
func TestUploadsAreBounded(t *testing.T) {
	testutil.SkipLong(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSite(t, "mem:", func(o *server.Options) { o.Now = func() time.Time { return now } })
	s.create("s")
	up := func(n int) string {
		data := strings.Repeat(fmt.Sprintf("%08d", n), 1<<20) // 8 MiB
		sum := sumOf([]byte(data))
		s.do("PUT", "/v1/sessions/s/blobs/"+sum, data, "Content-Type: image/png")
		return fmt.Sprintf("coppice-blob:sha256:%s:%d", sum, len(data))
	}
	has := func(ref string, status int) {
		t.Helper()
		body := `{"images":"ref","entries":[{"role":"user","content":"` + ref + `"}]}`
		if r := s.do("POST", commits, body, "If-Match: *"); r.StatusCode != status {
			t.Errorf("status %d, want %d: %.200s", r.StatusCode, status, r.body)
		}
	}
	var refs []string
	for n := range 5 {
		refs = append(refs, up(n))
	}
	has(refs[0], 422) // 32 MiB are kept
	has(refs[1], 413) // it is there, and too long for text
	now = now.Add(11 * time.Minute)
	up(9)
	has(refs[4], 422)
	// Many references to one image are more than a body.
	many := `"` + strings.Repeat(up(9)+" ", 10) + `"`
	s.do("POST", commits, `{"images":"ref","entries":[{"role":"user","content":`+many+`}]}`, "If-Match: *").want(t, 413)
}
