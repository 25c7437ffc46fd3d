package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/server"
)

// maxSmall is the limit of a body in the suite, in bytes.
const maxSmall = 1 << 20

// world is a server with everything that a status can come from: tokens, tenants, a small limit of bodies, and a
// backend that fails on request.
type world struct {
	*site
	t      *testing.T
	d      *description
	tokens *server.Tokens
	below  backend.Backend
	fails  fault.Backend
	slow   string  // URL of a server on the same store that waits for a body for a short time
	brief  string  // URL of one that writes for a short time
	n      *int    // sessions so far
	gone   *string // id of a deleted session; "" = there is none yet
}

func newWorld(t *testing.T, below backend.Backend) *world {
	t.Helper()
	b := fault.New(below, 1)
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{
		Store: st, Tokens: someTokens(t), MaxBody: maxSmall, MaxImport: maxSmall, Timeout: 10 * time.Second,
		Tenant: func(name string) (*coppice.Store, error) { return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist) },
	}
	tokens := o.Tokens
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.ReadTimeout = 20 * time.Millisecond
	hasty, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.ReadTimeout, o.Timeout = 0, 500*time.Millisecond
	soon, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h, slow := httptest.NewServer(srv), httptest.NewServer(hasty)
	brief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), o.Timeout) // an import ends with its request
		defer cancel()
		soon.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() {
		b.Clear()
		srv.EndStreams()
		h.Close()
		slow.Close()
		brief.Close()
		if err := errors.Join(srv.Close(), hasty.Close(), soon.Close()); err != nil {
			t.Error(err)
		}
		_ = st.Close()
		_ = b.Close()
	})
	return &world{
		site: &site{t, h.URL, st, srv}, t: t, d: readDescription(t), tokens: tokens, below: below, fails: b,
		slow: slow.URL, brief: brief.URL, n: new(int), gone: new(string),
	}
}

// subject is a session that has something of everything.
type subject struct {
	id      string
	first   string // ETag of the first turn
	head    string // ETag
	entries []string
	image   string // its hash
	fresh   string // an id that no session has
}

// subject makes a session.
func (w *world) subject() subject {
	w.t.Helper()
	*w.n++
	id := fmt.Sprintf("s%d", *w.n)
	at := "/v1/sessions/" + id
	auth := "Authorization: Bearer writer"
	w.site.do("PUT", at, `{"title":"a session","meta":{"team":"blue"}}`, "If-None-Match: *", "Idempotency-Key: made", auth).
		want(w.t, 201)
	s := subject{id: id, fresh: id + ".new"}
	for i, text := range []string{"one", "two", "three"} {
		r := w.site.do("POST", at+"/commits", `{"entries":[{"role":"user","content":"`+text+`"},`+
			`{"role":"assistant","content":"`+strings.Repeat("yes ", 50)+`"}],"state":{"said":"`+text+`"},"docs":{"d":1}}`,
			"If-Match: *", fmt.Sprintf("Idempotency-Key: turn-%d", i), auth)
		for _, e := range r.want(w.t, 200)["entries"].([]any) {
			s.entries = append(s.entries, e.(string))
		}
		if i == 0 {
			s.first = r.etag()
		}
	}
	for what, body := range map[string]string{
		"label":    `{"entry":"` + s.entries[0] + `","label":"green"}`,
		"snapshot": `{"tag":"t"}`,
	} {
		w.site.do("POST", at+"/"+what, body, "If-Match: *", auth).want(w.t, 200)
	}
	edit := `{"entry":"` + s.entries[2] + `","message":{"role":"user","content":"deux"}}`
	r := w.site.do("POST", at+"/edit", edit, "If-Match: *", auth)
	r.want(w.t, 200)
	s.head = r.etag()
	return s
}

// illustrated makes a session that has an image too.
func (w *world) illustrated() subject {
	w.t.Helper()
	s := w.subject()
	data, shown := picture("GIF89a", 50_000)
	r := w.site.do("POST", "/v1/sessions/"+s.id+"/commits", `{"entries":[`+shown+`]}`, "If-Match: *",
		"Authorization: Bearer writer")
	r.want(w.t, 200)
	s.image, s.head = sumOf(data), r.etag()
	return s
}

// call is a request for an operation.
type call struct {
	id      string // of the session
	entry   string
	image   string
	prefix  string // before the path
	query   string
	body    string
	kind    string // Content-Type; "" = that of the description
	token   string // "" = none
	headers []string
}

// send sends a request and checks that its answer is documented.
func (w *world) send(op *described, c call) reply {
	w.t.Helper()
	path := strings.NewReplacer("{id}", c.id, "{entry}", c.entry, "{seq}", "1", "{name}", "d",
		"{sha256}", c.image).Replace(op.path)
	if strings.Contains(path, "{") {
		w.t.Fatalf("%s: the suite has no value for a parameter of %s", op.OperationID, op.path)
	}
	headers := slices.Clone(c.headers)
	if c.token != "" {
		headers = append(headers, "Authorization: Bearer "+c.token)
	}
	if c.kind == "" && op.RequestBody != nil {
		c.kind = slices.Sorted(maps.Keys(op.RequestBody.Content))[0]
	}
	if c.kind != "" {
		headers = append(headers, "Content-Type: "+c.kind)
	}
	if c.query != "" {
		path += "?" + c.query
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	r, err := w.try(ctx, op.method, c.prefix+path, c.body, headers...)
	if err != nil {
		w.t.Fatalf("%s: %v", op.OperationID, err)
	}
	if err := w.d.faults(op, r); err != nil {
		w.t.Errorf("%s %s: %v", op.OperationID, c.query, err)
	}
	return r
}

// valid returns a request for an operation that succeeds.
func valid(op *described, s subject) call {
	c := call{id: s.id, entry: s.entries[1], image: s.image, token: "writer"}
	for _, p := range op.Parameters {
		if p.In == "header" && p.Name == "If-Match" {
			c.headers = append(c.headers, "If-Match: *")
		}
	}
	if op.RequestBody != nil {
		c.body = "{}"
	}
	switch op.OperationID {
	case "createSession":
		c.id, c.body = s.fresh, `{"title":"new","cwd":"/w","meta":{"a":"b"}}`
		c.headers = append(c.headers, "If-None-Match: *")
	case "changeSession":
		c.body = `{"title":"new","meta":{"team":null,"x":"y"}}`
	case "commit":
		c.body = `{"entries":[{"role":"user","content":"more"}],"state":{"n":1},"manager":[1],"docs":{"plan":"x"}}`
	case "diff":
		c.query = "a=seq:1"
	case "events":
		c.query = "after=0&wait=1"
	case "search":
		c.query = "q=two"
	case "import":
		c.body = strings.ReplaceAll(piFile, "from-pi", s.fresh)
	case "compact":
		c.body = `{"summary":"in short","from":"` + s.entries[1] + `"}`
	case "switch":
		c.body = `{"to":"` + s.entries[5] + `"}`
	case "branch":
		c.body = `{"entry":"` + s.entries[0] + `","name":"b"}`
	case "edit":
		c.body = `{"entry":"` + s.entries[0] + `","message":{"role":"user","content":"uno"}}`
	case "rollback":
		c.body = `{"to":"seq:1"}`
	case "label":
		c.body = `{"entry":"` + s.entries[0] + `","label":"red"}`
	case "upload":
		c.body = "GIF89a and more"
		c.image = sumOf([]byte(c.body))
	case "amend":
		c.body = `{"entry":"` + s.entries[0] + `","message":{"role":"user","content":"un"}}`
	case "hide":
		c.body = `{"entry":"` + s.entries[0] + `"}`
	case "erase":
		c.token, c.body = "eraser", `{"entries":["`+s.entries[0]+`"]}`
	case "runRetention":
		c.body = `{"dryRun":false}`
	case "setRetention":
		c.token, c.body = "admin", `{"keepLast":1000,"snapshots":{"keepTags":["*"]}}`
	case "hold":
		c.token, c.body = "holder", `{"reason":"case 7"}`
	case "release":
		c.token = "holder"
	case "renameBranch":
		c.body = `{"branch":"main","name":"trunk"}`
	case "snapshot":
		c.body = `{"tag":"u"}`
	case "partial":
		c.body = `{"partial":{"role":"assistant","content":"so f"}}`
	case "verify":
		c.body = `{"deep":true}`
	case "fork":
		c.body = `{"to":"seq:1","id":"` + s.fresh + `"}`
	case "issueToken":
		c.token, c.body = "issuer", `{"session":"`+s.id+`"}`
	}
	return c
}

// provoke sends what a status is the answer to. ok = false: nothing in this suite leads to it.
func (w *world) provoke(op *described, status int, s subject) (r reply, ok bool) {
	w.t.Helper()
	c := valid(op, s)
	if op.OperationID == "runRetention" { // a run that broke off has the store for a time
		if err := w.below.Delete(w.t.Context(), layout.RetentionRunKey); err != nil {
			w.t.Fatal(err)
		}
	}
	if op.OperationID == "release" && (status == http.StatusConflict || status >= 500) { // there has to be a hold
		w.send(w.d.operation(w.t, "hold"), valid(w.d.operation(w.t, "hold"), s)).want(w.t, 200)
	}
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
	case http.StatusPartialContent:
		c.headers = append(c.headers, "Range: bytes=2-5")
	case http.StatusRequestedRangeNotSatisfiable:
		c.headers = append(c.headers, "Range: bytes=9999999-")
	case http.StatusNotModified:
		c.headers = append(c.headers, "If-None-Match: "+w.send(op, c).etag())
	case http.StatusBadRequest:
		if c.id = "%2e%2e"; !strings.Contains(op.path, "{id}") {
			c.query = "limit=x&format=x"
		}
	case http.StatusUnauthorized:
		c.token = ""
	case http.StatusForbidden:
		if c.token = "reader"; op.method == http.MethodGet || op.OperationID == "verify" {
			c.token = "acme's"
		}
	case http.StatusNotFound:
		if c.id = "none"; !strings.Contains(op.path, "{id}") || op.OperationID == "createSession" {
			c.prefix = "/t/nobody"
		}
	case http.StatusRequestTimeout:
		return w.half(op, c), true
	case http.StatusConflict:
		return w.conflict(op, c, s)
	case http.StatusGone:
		if *w.gone == "" {
			*w.gone = w.subject().id
			deletion := call{id: *w.gone, token: "writer", headers: []string{"If-Match: *"}}
			w.send(w.d.operation(w.t, "deleteSession"), deletion)
		}
		switch op.OperationID {
		case "rows", "map":
			c.query = "view=none"
		case "fork":
			c.body = `{"id":"` + *w.gone + `"}`
		case "import":
			c.query = "session=" + *w.gone
		default:
			c.id = *w.gone
		}
	case http.StatusPreconditionFailed:
		switch c.headers = []string{"If-Match: " + s.first}; op.OperationID {
		case "createSession":
			c.id, c.headers = s.id, []string{"If-None-Match: *"}
		case "claim", "label", "amend", "hide", "renameBranch", "changeSession", "hold", "release":
			// they conflict with no commit
			c.headers = []string{"If-Match: none"}
		}
	case http.StatusRequestEntityTooLarge:
		c.body = strings.Repeat(" ", maxSmall+1)
	case http.StatusUnsupportedMediaType:
		if c.kind = "text/plain"; op.OperationID == "import" { // it goes by the content
			c.body = "no session file"
		}
	case http.StatusMisdirectedRequest:
		c.headers = append(c.headers, "Host: evil.example")
	case http.StatusUnprocessableEntity:
		return w.unprocessable(op, c, s)
	case http.StatusPreconditionRequired:
		c.headers = nil
	case http.StatusInternalServerError:
		if op.OperationID == "partial" {
			c.id = w.cold(s.fresh)
		}
		defer w.failing(fault.Rule{Kind: fault.Before, Outcome: backend.NotApplied, Count: -1})()
	case http.StatusServiceUnavailable:
		if op.OperationID == "issueToken" {
			defer server.SetIssued(w.tokens, server.SetIssued(w.tokens, 0))
		}
		if op.OperationID == "partial" {
			c.id = w.cold(s.fresh)
		}
		defer w.failing(fault.Rule{
			Kind: fault.Before, Outcome: backend.NotApplied, Count: -1, Err: context.DeadlineExceeded,
		})()
	case http.StatusInsufficientStorage:
		defer w.failing(fault.Rule{
			When: func(c fault.Call) bool { return slices.Contains([]string{"put", "append", "delete"}, c.Op) },
			Kind: fault.Before, Outcome: backend.NotApplied, Count: -1, Err: syscall.ENOSPC,
		})()
	case http.StatusGatewayTimeout:
		defer w.losing()()
		w = w.in(w.t)
		w.site.url = w.brief
	default:
		return r, false
	}
	return w.send(op, c), true
}

// losing makes the backend lose the answer to each write, and fail to read from the first one on, until the function
// that it returns is called.
func (w *world) losing() (end func()) {
	var wrote atomic.Bool
	writes := func(c fault.Call) bool { return c.Op == "put" || c.Op == "append" }
	w.fails.Add(fault.Rule{
		When: func(c fault.Call) bool {
			if writes(c) {
				wrote.Store(true)
			}
			return writes(c)
		},
		Kind: fault.After, Count: -1,
	})
	return w.failing(fault.Rule{
		When: func(c fault.Call) bool { return wrote.Load() && !writes(c) }, Kind: fault.Before, Count: -1,
	})
}

// half sends half a body, and waits for the answer.
func (w *world) half(op *described, c call) reply {
	w.t.Helper()
	body, rest := io.Pipe()
	go func() { _, _ = rest.Write([]byte("{")) }() // ends when it was read, or when the other end is closed
	defer func() { _ = body.Close() }()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	path := strings.ReplaceAll(op.path, "{id}", c.id)
	req, err := http.NewRequestWithContext(ctx, op.method, w.slow+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	req.ContentLength = 100
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", slices.Sorted(maps.Keys(op.RequestBody.Content))[0])
	for _, h := range c.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	r := reply{resp, raw}
	if err := w.d.faults(op, r); err != nil {
		w.t.Errorf("%s: %v", op.OperationID, err)
	}
	return r
}

// cold makes a session that the server has not opened yet: what it asks for is read from the backend.
func (w *world) cold(id string) string {
	w.t.Helper()
	st, err := coppice.New(w.below, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	h, err := st.Create(id, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := h.Commit(w.t.Context(), coppice.Turn{}); err != nil {
		w.t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// failing makes the backend fail until the function that it returns is called.
func (w *world) failing(rule fault.Rule) (end func()) {
	w.fails.Add(rule)
	return w.fails.Clear
}

// conflict provokes 409: for what makes a session an id that is taken; for what no other writer can keep from its
// write a claim since the commit in If-Match; else another writer that takes over the session at the moment in which
// the operation writes.
func (w *world) conflict(op *described, c call, s subject) (reply, bool) {
	w.t.Helper()
	switch op.OperationID {
	case "fork":
		c.body = `{"id":"` + s.id + `"}`
		return w.send(op, c), true
	case "import":
		c.query = "session=" + s.id
		return w.send(op, c), true
	case "export": // of a session with a credential, of no account
		c.id = w.subject().id
		body := `{"entries":[{"role":"user","content":"` + "gh" + `p_x7Kq2mZp9RtV4wYb8NcL3sDf6GhJ5kQaE1uT"}]}`
		commit := call{id: c.id, token: "writer", headers: []string{"If-Match: *"}, body: body}
		w.send(w.d.operation(w.t, "commit"), commit).want(w.t, 200)
		return w.send(op, c), true
	case "erase": // in a session that is held
		hold := w.d.operation(w.t, "hold")
		w.send(hold, valid(hold, s)).want(w.t, 200)
		return w.send(op, c), true
	case "compact":
	default:
		c.headers = []string{"If-Match: " + s.head}
	}
	other, err := coppice.New(w.below, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	claimed := false
	defer w.failing(fault.Rule{When: func(call fault.Call) bool {
		if !claimed && !strings.HasPrefix(call.Op, "get") && call.Op != "list" && call.Op != "stat" {
			claimed = true
			h, err := other.Open(context.Background(), s.id, nil)
			if err != nil {
				w.t.Errorf("claim: %v", err)
				return false
			}
			defer func() { _ = h.Close() }()
			if _, err := h.Claim(context.Background()); err != nil {
				w.t.Errorf("claim: %v", err)
			}
		}
		return false
	}})()
	return w.send(op, c), true
}

// unprocessable provokes 422.
func (w *world) unprocessable(op *described, c call, s subject) (r reply, ok bool) {
	w.t.Helper()
	switch op.OperationID {
	case "commit", "switch", "branch", "edit", "rollback", "changeSession", "claim", "hold", "release":
		c.headers = append(c.headers, "Idempotency-Key: turn-0")
	case "createSession":
		c.id = s.id
		c.headers = append(c.headers, "Idempotency-Key: made")
	case "compact": // nothing is before the first entry
		c.body = `{"summary":"in short","from":"` + s.entries[0] + `"}`
	case "label": // here and below it names what does not exist
		c.body = `{"entry":"none","label":"red"}`
	case "amend", "hide":
		c.body = `{"entry":"none"}`
	case "erase":
		c.body = `{"entries":["none"]}`
	case "renameBranch":
		c.body = `{"branch":"none","name":"x"}`
	case "fork":
		c.body = `{"to":"seq:99"}`
	case "diff":
		c.query = "a=seq:99"
	case "listEntries":
		c.query = "from=none"
	case "rows":
		c.query = "around=none"
	case "export":
		c.query = "format=markdown&line=none"
	case "state", "docs", "context", "listCommits", "blame", "usage":
		c.query = "at=seq:99"
	default:
		return r, false
	}
	return w.send(op, c), true
}

// codes are the codes of the problems of a status, as docs/http.md and docs/cli-json.md have them.
var codes = map[int][]string{
	400: {"usage"}, 401: {"unauthorized"}, 403: {"permission"}, 404: {"not-found"}, 408: {"slow-body"},
	409: {"fenced", "exists", "secrets", "held"}, 410: {"gone", "deleted"}, 412: {"conflict", "exists"},
	413: {"too-large"},
	415: {"usage", "not-a-session"},
	416: {"usage"}, 421: {"host"}, 422: {"key-reused", "nothing-to-compact", "no-entry"}, 428: {"no-condition"},
	500: {"failed"},
	503: {"interrupted", "busy"}, 504: {"outcome-unknown"}, 507: {"no-space", "quota"},
}

// Every operation has every status that the description documents for it, no answer has another one, and each is as in
// its schema. What is refused changes nothing.
func TestContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) backend.Backend{
		"memory": func(*testing.T) backend.Backend { return memory.New() },
		"disk": func(t *testing.T) backend.Backend {
			b, err := local.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "disk" && testing.Short() {
				t.Skip("as in memory, with every write synced")
			}
			w := newWorld(t, open(t))
			shared := w.illustrated()
			for i, op := range w.d.operations {
				for j, status := range op.statuses(t) {
					if testing.Short() && (i+j)%4 != 0 { // the race detector's run: a part of all
						continue
					}
					t.Run(fmt.Sprintf("%s %d", op.OperationID, status), func(t *testing.T) {
						w := w.in(t)
						s := shared
						if op.method != http.MethodGet && (status < 400 || status == 409 || status >= 500) {
							s = w.subject()
						}
						w.provokes(op, status, s)
					})
				}
			}
		})
	}
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	out := *w
	out.t, out.site = t, &site{t, w.url, w.st, w.srv}
	return &out
}

// provokes runs one case.
func (w *world) provokes(op *described, status int, s subject) {
	w.t.Helper()
	r, ok := w.provoke(op, status, s)
	if !ok {
		w.t.Fatal("nothing provokes this status: give it a case in this suite, or take it out of the description")
	}
	if r.StatusCode != status {
		w.t.Fatalf("status %d: %.300s", r.StatusCode, r.body)
	}
	if status < 400 {
		return
	}
	var code string
	if p := r.want(w.t, status); p["code"] != nil {
		code = p["code"].(string)
	}
	if !slices.Contains(codes[status], code) {
		w.t.Errorf("code %q, want one of %q: %s", code, codes[status], r.body)
	}
	if status == 409 || status >= 500 { // there another writer was, or the outcome of the write is another test's
		return
	}
	if now := w.do("GET", "/v1/sessions/"+s.id, "", "Authorization: Bearer reader"); now.etag() != s.head {
		w.t.Errorf("what was refused changed the session: ETag %s, was %s; %s", now.etag(), s.head, now.body)
	}
}

// A move that was made on an older head is refused, also where the state has not changed since: nothing that another
// client has written is left behind unseen. An annotation is made all the same, and its client stays where it was.
func TestStaleMoves(t *testing.T) {
	w := newWorld(t, memory.New())
	for _, op := range w.d.operations {
		if op.Responses["412"] == nil || op.OperationID == "createSession" {
			continue
		}
		s := w.subject()
		first := w.send(w.d.operation(t, "commit"), call{id: s.id, token: "writer", headers: []string{"If-Match: *"}, body: entry("first")})
		w.send(w.d.operation(t, "commit"), call{id: s.id, token: "writer", headers: []string{"If-Match: *"}, body: entry("second")}).want(t, 200)
		c := valid(op, s)
		c.headers = []string{"If-Match: " + first.etag()}
		r := w.send(op, c)
		switch op.OperationID {
		case "claim", "label", "amend", "hide", "renameBranch", "changeSession", "hold", "release":
			if r.StatusCode != http.StatusOK || r.etag() != first.etag() {
				t.Errorf("%s: status %d, ETag %s, want that of If-Match: %s", op.OperationID, r.StatusCode, r.etag(),
					r.body)
			}
		default:
			if r.StatusCode != http.StatusPreconditionFailed {
				t.Errorf("%s: status %d: %s", op.OperationID, r.StatusCode, r.body)
			}
		}
	}
}

func entry(text string) string { return `{"entries":[{"role":"user","content":"` + text + `"}]}` }
