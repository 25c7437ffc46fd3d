package export

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

var update = flag.Bool("update", false, "write the golden files")

func session(t *testing.T, title string) *coppice.Session {
	t.Helper()
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	st, err := coppice.New(memory.New(), &coppice.Options{
		Now:  func() time.Time { return clock },
		Rand: rand.NewChaCha8([32]byte{7}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create("s", &coppice.SessionOptions{Title: title, Cwd: "/srv/<place>"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return s
}

func say(t *testing.T, s *coppice.Session, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if _, err := s.Append(t.Context(), entry.Line([]byte(l))); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	if _, err := s.Commit(t.Context(), coppice.Turn{}); err != nil {
		t.Fatal(err)
	}
}

func line(id, parent, message string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-03-02T09:00:00.000Z","message":%s}`, id, p, message)
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

const (
	thinking = `{"role":"assistant","content":[{"type":"thinking","thinking":"let me\nthink"},{"type":"text","text":"Here."},` +
		`{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"echo '` + "```" + `'"}}]}`
	result  = `{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"text","text":"` + "```" + `"}]}`
	openai  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}`
	picture = `{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},` +
		`{"type":"image","data":"PHN2Zz4=","mimeType":"image/svg+xml"}]}`
)

// branched is a session with every kind of part, and with versions within versions.
func branched(t *testing.T) *coppice.Session {
	s := session(t, "A <b>title</b>")
	say(t, s, line("u1", "", user("first question")), line("a1", "u1", thinking), line("r1", "a1", result),
		line("u2", "r1", user("left behind")), line("a2", "u2", `{"role":"assistant","content":"an answer that was left"}`),
		line("u2b", "r1", user("asked again")), line("a2b", "u2b", openai),
		line("u3", "a2b", picture), line("u3b", "a2b", user("the last word")),
		`{"type":"compaction","id":"c","parentId":"u3b","timestamp":"2026-03-02T09:00:01.000Z","summary":"what went before","firstKeptEntryId":"u3b","tokensBefore":9}`)
	return s
}

func text(t *testing.T, f func(context.Context, *coppice.Session) (string, error), s *coppice.Session) string {
	t.Helper()
	out, err := f(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func markdownOf(ctx context.Context, s *coppice.Session) (string, error) {
	var b bytes.Buffer
	err := Markdown(ctx, s, &b, nil)
	return b.String(), err
}

func htmlOf(ctx context.Context, s *coppice.Session) (string, error) {
	var b bytes.Buffer
	err := HTML(ctx, s, &b, nil)
	return b.String(), err
}

// The whole output for a session that has everything.
func TestGolden(t *testing.T) {
	for name, f := range map[string]func(context.Context, *coppice.Session) (string, error){"session.md": markdownOf, "session.html": htmlOf} {
		got := text(t, f, branched(t))
		file := "testdata/" + name
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; run with -update and look at the change:\n%s", file, got)
		}
	}
}

// Every message of every branch is there once, whatever the shape of the tree, and what is opened is closed.
func TestEveryBranchIsThere(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := session(t, "")
		var lines []string
		n := 1 + rng.IntN(300)
		deep := seed%4 == 0 // versions within versions within versions
		for i := range n {
			parent := ""
			switch {
			case i > 0 && deep:
				parent = fmt.Sprintf("e%d", max(0, i-1-rng.IntN(2)))
			case i > 0 && rng.IntN(30) > 0:
				parent = fmt.Sprintf("e%d", rng.IntN(i))
			}
			lines = append(lines, line(fmt.Sprintf("e%d", i), parent, user(fmt.Sprintf("<said %d.>", i))))
		}
		say(t, s, lines...)
		page, md := text(t, htmlOf, s), text(t, markdownOf, s)
		for i := range n {
			if got := strings.Count(page, fmt.Sprintf(`<div class="text">&lt;said %d.&gt;</div>`, i)); got != 1 {
				t.Errorf("seed %d: message %d stands %d times in the page", seed, i, got)
			}
			if got := strings.Count(md, fmt.Sprintf("\n<said %d.>\n", i)); got != 1 {
				t.Errorf("seed %d: message %d stands %d times in the Markdown", seed, i, got)
			}
		}
		if open, shut := strings.Count(page, "<details"), strings.Count(page, "</details>"); open != shut {
			t.Errorf("seed %d: %d folds open, %d close", seed, open, shut)
		}
	}
}

// payloads are what pages were broken with.
var payloads = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>alert(1)</script>`, `</title><script>alert(1)</script>`,
	`javascript:alert(1)`, `' onmouseover='alert(1)`, `<!--`, `]]><script>`, `<svg/onload=alert(1)>`, `{{.}}`, `<a href="javascript:alert(1)">x</a>`,
	"\u2028<script>", `<iframe srcdoc="<script>">`, `<meta http-equiv=refresh content=0>`, `<base href=//evil>`,
}

// Nothing that a session holds becomes markup of the page: its elements are those of a page of plain words.
func TestNothingIsMarkup(t *testing.T) {
	build := func(p string) string {
		s := session(t, p)
		q := fmt.Sprintf("%q", p)
		say(t, s, line("u", "", user(p)),
			line("a", "u", `{"role":"assistant","content":[{"type":"thinking","thinking":`+q+`},{"type":"text","text":`+q+`},{"type":"toolCall","id":"c","name":`+q+`,"arguments":{"x":`+q+`}}]}`),
			line("r", "a", `{"role":"toolResult","toolCallId":"c","toolName":`+q+`,"content":[{"type":"text","text":`+q+`}]}`),
			line("i", "r", `{"role":"user","content":[{"type":"image","mimeType":"image/png","data":`+q+`},{"type":"image","mimeType":`+q+`,"data":"QQ=="}]}`),
			line("o", "i", `{"role":`+q+`,"odd":`+q+`}`), line("v", "i", user(p)))
		if _, err := s.Label(t.Context(), "u", p); err != nil {
			t.Fatal(err)
		}
		return text(t, htmlOf, s)
	}
	tags := regexp.MustCompile(`<[^>]*>`)
	want := len(tags.FindAllString(build("plain words"), -1))
	for _, p := range payloads {
		page := build(p)
		if got := len(tags.FindAllString(page, -1)); got != want {
			t.Errorf("%q: the page has %d tags, want %d", p, got, want)
		}
		if strings.Contains(page, "<script") || strings.Contains(page, "javascript:alert(1)\"") && strings.Contains(page, "href=\"javascript") {
			t.Errorf("%q: it stands in the page as markup", p)
		}
		if !strings.Contains(page, `default-src &#39;none&#39;`) && !strings.Contains(page, `default-src 'none'`) {
			t.Error("the page has no policy")
		}
	}
}

// A session that holds nothing is a page too.
func TestEmpty(t *testing.T) {
	s := session(t, "")
	if _, err := s.Commit(t.Context(), coppice.Turn{State: 1}); err != nil {
		t.Fatal(err)
	}
	if page := text(t, htmlOf, s); !strings.Contains(page, "Session s") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("got %s", page)
	}
	if md := text(t, markdownOf, s); !strings.HasPrefix(md, "# Session s\n") {
		t.Errorf("got %s", md)
	}
}

// A filter leaves out what it leaves out of a tree.
func TestFilter(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(t.Context(), branched(t), &b, &Options{Filter: transcript.FilterUserOnly}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "## assistant") || !strings.Contains(got, "left behind") {
		t.Errorf("got %s", got)
	}
}
