package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/server"
)

// hostileTexts are values that clients send who mean no good, or who have made a mistake.
var hostileTexts = []string{
	"", " ", "\x00", "a\x00b", "\xff\xfe", "\xed\xa0\x80", "..", ".", "../../etc/passwd", "..\\..\\windows", "/", "//",
	"%", "%2e%2e%2f", "%00", "a/b", "-", ".hidden", "CON", "s ", "s.", "0", "-1", "1", "00", "+1", "1e3", "1.5",
	"18446744073709551615", "18446744073709551616", "99999999999999999999999999", "-9223372036854775808", "NaN", "0x10",
	"true", "null", "*", `"*"`, `W/"x"`, `"a","b"`, "\"", "'", "<script>", "${x}", "{id}", "seq:", "seq:-1", "seq:1",
	"seq:18446744073709551615", "commit:", "entry:", "snap:x", "tag:t", "tag:", "main", "head", "all", "2026-01-01",
	"2026-13-45T99:99:99Z", "MQ", "MA", "LTE", "AAAA", "/w8", "////", "eyJ4Ijp9", "/", "/a/b", "/~2", "/0", "a,b,c",
	",", strings.Repeat(",", 600), strings.Repeat("a", 5000), strings.Repeat("/", 3000), strings.Repeat("é", 200),
	"\u202e", "\u2028", "\U0010ffff", "re:(", "re:(a*)*b", "re:a{1000}{1000}", `"unclosed`, "bytes=0-", "bytes=-1",
	"bytes=5-2", "bytes=" + strings.Repeat("0-0,", 300), "anthropic", "gemini", "asc", "desc", "user-only", "ref",
}

// hostileBodies are bodies of the same kind.
var hostileBodies = []string{
	"", "null", "true", "[]", "{}", "0", `""`, "{", "[[[[", "\xff", "\x00", "\xef\xbb\xbf{}", "{}{}", "{} x", "1e999999",
	`{"entries":null}`, `{"entries":[null]}`, `{"entries":[{}]}`, `{"entries":[[]]}`, `{"entries":{}}`,
	`{"entries":[{"role":"user","content":null}]}`, `{"entries":[{"role":1}]}`, `{"entries":[{"role":"user","content":1e400}]}`,
	`{"entries":[{"role":"user","content":"\ud800"}],"state":"\ud800"}`, `{"state":1e999999}`, `{"state":null,"state":1}`,
	`{"entries":[{"type":"message","id":"x","parentId":"y","message":{"role":"user","content":"a"}}]}`,
	`{"entries":[{"type":"message","id":"` + strings.Repeat("x", 3000) + `","message":{"role":"user","content":"a"}}]}`,
	`{"entries":[{"type":"message","id":"a/../b","timestamp":"never","message":{"role":"user","content":"a"}}]}`,
	`{"entries":[{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"!!"}]}]}`,
	`{"entries":[{"type":"compaction","summary":1,"firstKeptEntryId":"none"}]}`, `{"entries":[{"type":"label"}]}`,
	`{"entries":[{"type":"amendment"}]}`, `{"docs":{"":1}}`, `{"docs":{"` + strings.Repeat("d", 2000) + `":1}}`,
	`{"docs":{"a":null,"../b":2}}`, `{"reason":"` + strings.Repeat("r", 1000) + `"}`, `{"reason":"\u0000"}`,
	`{"cwd":""}`, `{"reason":"create"}`, `{"reason":"rollback"}`, `{"onKnownId":"x"}`, `{"onConflict":7}`, `{"to":""}`, `{"to":"seq:99999999999999999999"}`, `{"to":"` +
		strings.Repeat("t", 9000) + `"}`, `{"to":"\u0000"}`, `{"entry":"","name":"` + strings.Repeat("n", 9000) + `"}`,
	`{"entry":"","name":"..","summary":"\u0000"}`, `{"entry":"x","message":null}`, `{"entry":"x","label":"\u0000\n"}`,
	`{"tag":"../t"}`, `{"tag":"` + strings.Repeat("t", 3000) + `"}`, `{"partial":null}`, `{"partial":1}`, `{"deep":1}`,
	`{"partial":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, `{"id":"../x"}`, `{"id":"s"}`,
	`{"title":null,"meta":null}`, `{"title":"\u0000","cwd":"` + strings.Repeat("c", 9000) + `"}`, `{"meta":{"":""}}`,
	`{"meta":{"a":"` + strings.Repeat("m", 9000) + `"}}`, `{"parent":"none","relation":"\u2028"}`,
	`{"summary":"","keep":-1}`, `{"summary":"x","keep":1e30}`, `{"summary":"x","from":"none"}`,
	strings.Repeat("[", 600), strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600),
	`{"state":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`,
	`{"state":[` + strings.Repeat("0,", 100_000) + `0]}`, `{"entries":[` + strings.Repeat("{},", 1000) + `{}]}`,
	`{"type":"session","version":3,"id":"../x","timestamp":"","cwd":"/"}` + "\n",
	`{"type":"session","version":3,"id":"i","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}` + "\n{\n\xff\n{}\nnull\n",
	`{"type":"session_meta","payload":{"id":"x"}}` + "\n", `{"sessionId":"x","type":"user","message":1}` + "\n",
}

var everything = flag.Bool("everything", false, "send every hostile value in every parameter of every operation")

// attack is a request for an operation, with whatever its parameters are.
type attack struct {
	op      *described
	path    string // with its query
	headers []string
	body    string
	direct  bool // the path is not encoded: it may name another operation
}

// draw returns hostile text for a parameter.
func drawText(t *rapid.T, name string) string {
	switch rapid.IntRange(0, 9).Draw(t, name+" from") {
	case 0:
		return rapid.String().Draw(t, name)
	case 1:
		return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name))
	case 2:
		return strconv.FormatInt(rapid.Int64().Draw(t, name), 10)
	}
	return rapid.SampledFrom(hostileTexts).Draw(t, name)
}

// drawJSON returns JSON, mostly.
func drawJSON(t *rapid.T, name string, depth int) string {
	switch k := rapid.IntRange(0, 7).Draw(t, name+" kind"); {
	case k == 0 && depth < 4:
		return "[" + drawJSON(t, name, depth+1) + "," + drawJSON(t, name, depth+1) + "]"
	case k == 1 && depth < 4:
		return `{"a":` + drawJSON(t, name, depth+1) + `,"a":` + drawJSON(t, name, depth+1) + "}"
	case k == 2:
		return rapid.SampledFrom([]string{
			"1e999999", "-0.0", "123456789012345678901234567890", "null", "true", "01", "NaN", "1.", "[]", "{}",
		}).Draw(t, name)
	case k == 3:
		return `"\ud800\u0000\u2028"`
	}
	raw, err := json.Marshal(drawText(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// attacks returns a generator of requests for all operations.
func attacks(d *description) *rapid.Generator[attack] {
	return rapid.Custom(func(t *rapid.T) attack {
		op := rapid.SampledFrom(d.operations).Draw(t, "operation")
		a := attack{op: op, path: op.path, direct: rapid.IntRange(0, 9).Draw(t, "direct") == 0}
		query := url.Values{}
		for _, p := range op.Parameters {
			if p.In != "path" && rapid.IntRange(0, 3).Draw(t, "left out") == 0 {
				continue
			}
			v := drawText(t, p.Name)
			switch p.In {
			case "path":
				if p.Name == "id" && rapid.IntRange(0, 3).Draw(t, "there") > 0 {
					v = "s" // so that what comes after the session is reached
				}
				if !a.direct {
					v = escape(v)
				} else if v = strings.Map(printable, v); v == "" {
					v = "x"
				}
				a.path = strings.ReplaceAll(a.path, "{"+p.Name+"}", v)
			case "query":
				if p.Name == "wait" && rapid.IntRange(0, 30).Draw(t, "wait") > 0 {
					continue // what is valid waits
				}
				query.Add(p.Name, v)
			case "header":
				if p.Name == "If-Match" && rapid.Bool().Draw(t, "any") {
					v = "*"
				}
				a.headers = append(a.headers, p.Name+": "+strings.Map(printable, v))
			}
		}
		if op.OperationID == "deleteSession" {
			a.path = strings.Replace(a.path, "/sessions/s", "/sessions/victim", 1)
		}
		if len(query) > 0 {
			a.path += "?" + query.Encode()
		}
		if op.RequestBody != nil {
			a.body = drawBody(t, d, op)
		}
		return a
	})
}

// drawBody returns a body: any, or an object with the properties of the description and other values.
func drawBody(t *rapid.T, d *description, op *described) string {
	s := op.RequestBody.Content["application/json"].Schema
	if s == nil || rapid.Bool().Draw(t, "a body from the list") {
		return rapid.SampledFrom(hostileBodies).Draw(t, "body")
	}
	if s.Ref != "" {
		s = d.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	var members []string
	for _, name := range sortedKeys(s.Properties) {
		for range rapid.IntRange(0, 2).Draw(t, "times") {
			members = append(members, strconv.Quote(name)+":"+drawJSON(t, name, 0))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func sortedKeys(m map[string]*schema) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// printable drops what no client can send in a header or in a path.
func printable(r rune) rune {
	if r <= ' ' || r >= 0x7f || r == '?' || r == '#' || r == '%' {
		return -1
	}
	return r
}

// escape returns a segment of a path in which every byte but letters and digits is encoded. net/http cuts what is
// longer than its limit of headers, so long ones are cut here.
func escape(v string) string {
	var b strings.Builder
	for _, c := range []byte(v[:min(len(v), 5000)]) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	if b.Len() == 0 {
		return "%20"
	}
	return b.String()
}

// fire sends an attack, and returns what is wrong with its answer.
func (s *site) fire(d *description, a attack) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	if a.op.OperationID == "runRetention" { // only a dry run: another removes the sessions that intact reads
		a.body = strings.ReplaceAll(a.body, "false", "true")
	}
	req, err := http.NewRequestWithContext(ctx, a.op.method, s.url+"/", strings.NewReader(a.body))
	if err != nil {
		return err
	}
	path, query, _ := strings.Cut(a.path, "?")
	if rest, ok := strings.CutPrefix(path, "/v1/sessions/s"); ok && a.op.method != http.MethodGet {
		path = "/v1/sessions/w" + rest // what is written does not slow down what reads
	}
	req.URL.Opaque, req.URL.RawQuery = path, query // as it is
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil // it does not end
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("the answer is cut: %w", err)
	}
	r := reply{resp, raw}
	if r.StatusCode >= 500 {
		return fmt.Errorf("status %d: %.500s", r.StatusCode, r.body)
	}
	if kind := r.Header.Get("Content-Type"); r.StatusCode >= 400 && kind != "application/problem+json" {
		return fmt.Errorf("status %d as %s: %.200s", r.StatusCode, kind, r.body)
	}
	if a.direct {
		return nil
	}
	return d.faults(a.op, r)
}

// besieged returns a server with a session that attacks find.
func besieged(t testing.TB, url string) *site {
	s := newSite(t, url, func(o *server.Options) { o.MaxBody = 4 << 20 })
	s.create("s")
	s.create("w")
	s.do("POST", commits, hello("a"), "If-Match: *").want(t, 200)
	s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"t"}`, "If-Match: *").want(t, 200)
	return s
}

// intact checks every byte of the store.
func (s *site) intact(t testing.TB) {
	t.Helper()
	report, err := s.st.Verify(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			t.Errorf("damage: %v", p)
		}
	}
	for _, path := range []string{
		"s/resume", "w", "w/resume", "w/context", "w/context?provider=anthropic", "w/entries", "w/entries?path=all",
		"w/rows", "w/commits", "w/state", "w/labels", "w/usage", "w/export", "w/export?format=markdown", "w/snapshots",
	} {
		if r := s.do("GET", "/v1/sessions/"+path, ""); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %.300s", path, r.StatusCode, r.body)
		}
	}
}

// Whatever the parameters of a request are, it is answered as described, in time, without an error of the
// server's own; the store stays intact, and nothing is left running. For longer:
// go test ./server -run TestHostileRequests -timeout 1h -rapid.checks=10000.
func TestHostileRequests(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()
	d := readDescription(t)
	all := attacks(d)
	onEach(t, func(t *testing.T, url string) {
		s := besieged(t, url)
		defer s.intact(t)
		rapid.Check(t, func(rt *rapid.T) {
			for _, a := range rapid.SliceOfN(all, 1, 10).Draw(rt, "requests") {
				if err := s.fire(d, a); err != nil {
					rt.Fatalf("%s %s %.300q %.500q: %v", a.op.method, a.path, a.headers, a.body, err)
				}
			}
		})
	})
}

// Hostile texts in every parameter, and hostile bodies, of every operation: each seventh, with -everything all.
func TestHostileValues(t *testing.T) {
	d := readDescription(t)
	s := besieged(t, "mem:")
	defer s.intact(t)
	fire := func(op *described, change func(*attack)) {
		a := attack{op: op, path: strings.NewReplacer("{id}", "s", "{entry}", "x", "{seq}", "1", "{name}", "d",
			"{sha256}", "0").Replace(op.path)}
		if op.OperationID == "deleteSession" {
			a.path = "/v1/sessions/victim"
		}
		for _, p := range op.Parameters {
			if p.Name == "If-Match" || p.Name == "If-None-Match" {
				a.headers = append(a.headers, p.Name+": *")
			}
			if p.Name == "wait" {
				a.path += "?after=0" // there is something to answer with
			}
		}
		if op.RequestBody != nil {
			a.body = "{}"
		}
		change(&a)
		if err := s.fire(d, a); err != nil {
			t.Errorf("%s %s %.300q %.300q: %v", a.op.method, a.path, a.headers, a.body, err)
		}
	}
	step := 7
	switch {
	case *everything:
		step = 1
	case testing.Short():
		step = 29
	}
	for n, op := range d.operations {
		for _, p := range op.Parameters {
			for i := n % step; i < len(hostileTexts); i += step {
				v := hostileTexts[i]
				fire(op, func(a *attack) {
					switch {
					case p.In == "path":
						a.path = strings.NewReplacer("{"+p.Name+"}", escape(v), "{id}", "s").Replace(op.path)
					case p.In == "header":
						a.headers = append(a.headers, p.Name+": "+strings.Map(printable, v))
					case strings.Contains(a.path, "?"):
						a.path += "&" + p.Name + "=" + url.QueryEscape(v)
					default:
						a.path += "?" + p.Name + "=" + url.QueryEscape(v)
					}
				})
			}
		}
		if op.RequestBody != nil {
			for i := n % step; i < len(hostileBodies); i += step {
				fire(op, func(a *attack) { a.body = hostileBodies[i] })
			}
		}
	}
}

// Attacks do not make the server grow: what is in use after twice as many is about the same.
func TestHostileRequestsKeepNoMemory(t *testing.T) {
	testutil.SkipLong(t)
	d := readDescription(t)
	s := besieged(t, "file://"+t.TempDir())
	const rounds = 500
	var refused []*described // what stores nothing: the size of a session is no leak
	for _, op := range d.operations {
		if op.method == http.MethodGet {
			refused = append(refused, op)
		}
	}
	all := attacks(&description{schemas: d.schemas, operations: refused})
	seed := 0
	use := func() uint64 {
		for range rounds {
			seed++
			a := all.Example(seed)
			if err := s.fire(d, a); err != nil {
				t.Fatalf("%s %s: %v", a.op.method, a.path, err)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		return testutil.Live()
	}
	use() // what is kept once is kept now
	once := use()
	if twice := use(); twice > once+once/2+8<<20 {
		t.Errorf("%d bytes in use after %d requests, %d after %d", once, 2*rounds, twice, 3*rounds)
	}
}

// FuzzRequest sends one hostile value in all parameters of an operation, and a body.
func FuzzRequest(f *testing.F) {
	d := readDescription(f)
	for i := range max(len(hostileTexts), len(hostileBodies)) {
		f.Add(uint8(i), hostileTexts[i%len(hostileTexts)], hostileBodies[i%len(hostileBodies)])
	}
	s := besieged(f, "mem:")
	f.Fuzz(func(t *testing.T, n uint8, text, body string) {
		op := d.operations[int(n)%len(d.operations)]
		a := attack{op: op, path: op.path}
		query := url.Values{}
		for _, p := range op.Parameters {
			switch {
			case p.In == "path" && p.Name == "id" && op.OperationID != "deleteSession":
				a.path = strings.ReplaceAll(a.path, "{id}", "s")
			case p.In == "path":
				a.path = strings.ReplaceAll(a.path, "{"+p.Name+"}", escape(text))
			case p.Name == "If-Match":
				a.headers = append(a.headers, "If-Match: *")
			case p.In == "header":
				a.headers = append(a.headers, p.Name+": "+strings.Map(printable, text))
			case p.Name != "wait":
				query.Set(p.Name, text)
			}
		}
		if a.path += "?" + query.Encode(); op.RequestBody != nil {
			a.body = body
		}
		here := &site{t, s.url, s.st, s.srv}
		if err := here.fire(d, a); err != nil {
			t.Fatalf("%s %.500s %.300q: %v", op.method, a.path, a.headers, err)
		}
	})
}
