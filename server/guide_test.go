package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/examples/session"
)

func guide(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The table of errors in docs/http.md has every status and code that the description's suite provokes.
func TestGuideHasAllErrors(t *testing.T) {
	shown := map[string]string{} // by status: its row
	for _, row := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \| (.*?) \|`).FindAllStringSubmatch(guide(t), -1) {
		for status := range strings.SplitSeq(row[1], ", ") {
			shown[status] += row[2]
		}
	}
	for _, op := range readDescription(t).operations {
		for _, status := range op.statuses(t) {
			if status >= 400 && shown[strconv.Itoa(status)] == "" {
				t.Errorf("%s documents %d, and the guide does not", op.OperationID, status)
			}
		}
	}
	for status, list := range codes {
		for _, code := range list {
			if !strings.Contains(shown[strconv.Itoa(status)], "`"+code+"`") {
				t.Errorf("%d: code %s is missing: %s", status, code, shown[strconv.Itoa(status)])
			}
		}
	}
}

// Each test and benchmark that docs/http.md names exists.
func TestGuideNamesTests(t *testing.T) {
	there := map[string]bool{}
	decl := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range decl.FindAllSubmatch(raw, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`).FindAllString(guide(t), -1)
	if len(named) < 40 {
		t.Errorf("the guide names %d tests", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// The page shows the marked lines of the agents in examples as they are, and their number: at most 15, without
// those that are blank or only a comment.
func TestGuideShowsTheExamples(t *testing.T) {
	page := guide(t)
	for _, c := range []struct{ language, name, file string }{
		{"go", "Go", "agent/main.go"}, {"ts", "TypeScript", "typescript/agent.ts"}, {"python", "Python", "python/agent.py"},
	} {
		source, err := os.ReadFile("../examples/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		marked := regexp.MustCompile(`(?s)\n([ \t]*)(?://|#) persistence: begin\n(.*?)\n[ \t]*(?://|#) persistence: end\n`).FindAllSubmatch(source, -1)
		if len(marked) != 1 {
			t.Errorf("%s has %d marked parts, want 1", c.file, len(marked))
			continue
		}
		indent := string(marked[0][1])
		part := strings.TrimPrefix(strings.ReplaceAll("\n"+string(marked[0][2]), "\n"+indent, "\n"), "\n")
		if !strings.Contains(page, "```"+c.language+"\n"+part+"\n```\n") {
			t.Errorf("the page does not show the lines of %s:\n%s", c.file, part)
		}
		n := 0
		for line := range strings.Lines(part) {
			if !regexp.MustCompile(`^\s*(//.*|/\*\*.*\*/|#.*)?\s*$`).MatchString(line) {
				n++
			}
		}
		if said := fmt.Sprintf(`\b%d\s+(lines )?of %s\b`, n, c.name); n == 0 || n > 15 || !regexp.MustCompile(said).MatchString(page) {
			t.Errorf("%s has %d marked lines, want at most 15, and the page to say so", c.file, n)
		}
	}
}

// The requests of docs/http.md are sent, in their order, to a server on a new store. What the page shows is what they
// are answered: "..." is any text, and an id that is shortened is one of 36 bytes, everywhere the same.
func TestGuideIsTrue(t *testing.T) {
	s := newSite(t, "file://"+t.TempDir())
	ids := map[string]string{} // by what the page has in their place
	sent, compared := 0, 0
	lines := strings.Split(guide(t), "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "    $ curl ")
		if !ok {
			continue
		}
		for strings.Count(command, "'")%2 == 1 {
			i++
			command += "\n" + strings.TrimSpace(lines[i])
		}
		var shown []string
		for ; i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "    $"); i++ {
			blank := lines[i+1] == ""
			if !blank && !strings.HasPrefix(lines[i+1], "    ") ||
				blank && (i+2 == len(lines) || !strings.HasPrefix(lines[i+2], "    ") || strings.HasPrefix(lines[i+2], "    $")) {
				break
			}
			shown = append(shown, strings.TrimSpace(lines[i+1]))
		}
		sent++
		if len(shown) > 0 {
			compared++
		}
		s.compare(t, ids, command, strings.Join(shown, "\n"))
	}
	if sent < 10 || compared < 8 {
		t.Errorf("%d requests were sent, %d answers compared", sent, compared)
	}
}

// compare sends the request of a curl command, and reads its answer until it is what the page shows.
func (s *site) compare(t *testing.T, ids map[string]string, command, shown string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, head := s.curl(ctx, t, replaced(ids, command))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if status := regexp.MustCompile(`"status":(\d+)`).FindStringSubmatch(shown); !head && (status == nil) != (resp.StatusCode < 300) {
		t.Errorf("%s: %s", command, resp.Status)
	}
	var got bytes.Buffer
	if head {
		got.WriteString("HTTP/1.1 " + resp.Status + "\n")
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			if strings.Contains(shown, name+": ") {
				got.WriteString(name + ": " + resp.Header.Get(name) + "\n")
			}
		}
		got.WriteString("\n")
	}
	match, names := shownAs(ids, shown)
	piece := make([]byte, 32<<10)
	for {
		found := match.FindStringSubmatch(got.String())
		if shown != "" && found != nil {
			for i, name := range names {
				ids[name] = found[i+1]
			}
			return
		}
		n, err := resp.Body.Read(piece)
		got.Write(piece[:n])
		if err != nil && n == 0 {
			break
		}
	}
	if shown != "" {
		t.Errorf("%s\nthe page shows\n%s\nand the answer is\n%s", command, shown, got.String())
	}
}

// shownAs returns an expression for what the page shows, and the names of the ids that its groups are.
func shownAs(ids map[string]string, shown string) (match *regexp.Regexp, names []string) {
	var want strings.Builder
	rest := shown
	for _, at := range regexp.MustCompile(` ?\.\.\. ?|01a2(?:-[0-9a-f]{4})?\b`).FindAllString(shown, -1) {
		before, after, _ := strings.Cut(rest, at)
		want.WriteString(regexp.QuoteMeta(before))
		switch rest = after; {
		case strings.Contains(at, "..."):
			want.WriteString(`(?s:.*?)`)
		case ids[at] != "":
			want.WriteString(regexp.QuoteMeta(ids[at]))
		case slices.Contains(names, at):
			want.WriteString(`[0-9A-Za-z.-]+`)
		default:
			names = append(names, at)
			want.WriteString(`([0-9A-Za-z.-]+)`)
		}
	}
	want.WriteString(regexp.QuoteMeta(rest))
	return regexp.MustCompile("^" + strings.ReplaceAll(want.String(), "\n", `\n*`)), names
}

// replaced returns a text of the page with the ids of this run.
func replaced(ids map[string]string, text string) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(ids))) { // 01a2-7e96 before 01a2
		text = strings.ReplaceAll(text, name, ids[name])
	}
	return text
}

// curl returns the request of a command line; head = the answer is shown with its head.
func (s *site) curl(ctx context.Context, t *testing.T, line string) (req *http.Request, head bool) {
	t.Helper()
	words := regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1)
	method, target, body, get := "GET", "", "", false
	header := http.Header{}
	query := url.Values{}
	for i := 0; i < len(words); i++ {
		value := func() string {
			i++
			return words[i][1] + words[i][2]
		}
		switch word := words[i][1] + words[i][2]; word {
		case "-i":
			head = true
		case "-N":
		case "-G":
			get = true
		case "-X":
			method = value()
		case "-H":
			name, v, _ := strings.Cut(value(), ": ")
			header.Set(name, v)
		case "--json":
			body = value()
			header.Set("Content-Type", "application/json")
		case "--data-binary":
			value() // a file
			body = string(session.JSONL())
		case "-d", "--data-urlencode":
			name, v, _ := strings.Cut(value(), "=")
			query.Set(name, v)
		default:
			target = strings.TrimPrefix(word, "localhost:7070")
		}
	}
	if body != "" && method == "GET" {
		method = "POST"
	}
	if get {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+target, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(body))
	req.Header = header
	return req, head
}
