package roundtrip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// object is a line of a file, as encoding/json reads it.
type object map[string]any

func (o object) text(name string) string { s, _ := o[name].(string); return s }

func (o object) in(name string) object { m, _ := o[name].(map[string]any); return m }

func (o object) list(name string) (list []object) {
	all, _ := o[name].([]any)
	for _, v := range all {
		m, _ := v.(map[string]any)
		list = append(list, m)
	}
	return list
}

func (o object) number(name string) int64 { n, _ := o[name].(float64); return int64(n) }

// counted is the content of a file, counted without the readers: messages, and tokens of answers.
type counted struct {
	messages int
	tokens   int64
	spent    map[string]int64 // tokens by response
	seen     map[string]bool  // lines and answers of the file at hand
}

// once reports whether a line or an answer is the first one of its id in a file.
func (c *counted) once(id string) bool {
	was := c.seen[id]
	c.seen[id] = true
	return !was
}

// spend adds the tokens of a response, which several lines may report increasingly.
func (c *counted) spend(id string, tokens int64) {
	if was := c.spent[id]; tokens > was {
		c.tokens += tokens - was
		c.spent[id] = tokens
	}
}

// count counts the lines of a file of a program. In Codex a message is an item: an answer has several.
func (c *counted) count(f interop.Format, text []byte) {
	c.seen = map[string]bool{}
	var total int64 // of Codex
	for line := range bytes.Lines(text) {
		var o object
		if json.Unmarshal(line, &o) != nil {
			continue
		}
		switch f {
		case interop.ClaudeCode:
			c.claude(o)
		case interop.Codex:
			p := o.in("payload")
			switch {
			case o.text("type") == "response_item", o.text("type") == "compacted":
				c.messages++
			case p.text("type") == "token_count":
				if t := p.in("info").in("total_token_usage"); t != nil {
					total = t.number("input_tokens") + t.number("output_tokens")
				}
			}
		default:
			c.pi(o)
		}
	}
	c.tokens += total
}

func (c *counted) claude(o object) {
	m, id := o.in("message"), o.text("uuid")
	switch o.text("type") {
	case "system":
		if o.text("subtype") == "compact_boundary" && c.once(id) {
			c.messages++
		}
	case "attachment":
		a := o.in("attachment")
		if a.text("type") == "queued_command" && a["prompt"] != nil && c.once(id) {
			c.messages++
		}
	case "assistant":
		u := m.in("usage")
		sum := u.number("input_tokens") + u.number("output_tokens") +
			u.number("cache_read_input_tokens") + u.number("cache_creation_input_tokens")
		key := m.text("id")
		if key == "" {
			key = id
		}
		if c.spend(key, sum); c.once(key) {
			c.messages++
		}
	case "user":
		if !c.once(id) || o["isCompactSummary"] == true {
			return
		}
		rest := 1
		if list := m.list("content"); len(list) > 0 {
			rest = 0
			for _, b := range list {
				if b.text("type") == "tool_result" {
					c.messages++
				} else {
					rest = 1
				}
			}
		}
		c.messages += rest
	}
}

func (c *counted) pi(o object) {
	switch o.text("type") {
	case "message", "custom_message", "compaction", "branch_summary":
		c.messages++
	}
	u, id := o.in("usage"), o.in("message").text("responseId")
	if o.in("message").text("role") == "assistant" {
		u = o.in("message").in("usage")
	}
	const unique = 20 // bytes
	if len(id) < unique {
		id = o.text("id") + o.text("timestamp")
	}
	c.spend(id, u.number("input")+u.number("output")+u.number("cacheRead")+u.number("cacheWrite"))
}

// account compares the files of a program with the sessions imported from them.
type account struct {
	files, messages, path, elsewhere, diagnostics int
	exact, exactTokens                            int // files
	tokens                                        int64
}

// take imports a file and compares its sessions with it.
func (a *account) take(t *testing.T, b *importer.Batch, f importer.File) {
	st := testutil.Must(coppice.New(memory.New(), nil))(t)
	defer func() { testutil.OK(t, st.Close()) }()
	res, err := b.Import(t.Context(), st, f, importer.Options{Now: now})
	if errors.Is(err, interop.ErrNotSession) {
		return
	}
	testutil.OK(t, err)
	c := counted{spent: map[string]int64{}}
	for _, name := range append([]string{filepath.Base(f.Path)}, res.Files...) {
		name = filepath.Join(filepath.Dir(f.Path), name)
		c.count(interop.Format(res.Format), testutil.Must(os.ReadFile(name))(t))
	}
	path, elsewhere, tokens := 0, 0, int64(0)
	r := manager.NewUsageReader(st, nil)
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		testutil.OK(t, err)
		s := testutil.Must(st.Open(t.Context(), sum.ID, &coppice.SessionOptions{ReadOnly: true}))(t)
		tree := testutil.Must(s.Tree(t.Context()))(t)
		on, all := map[string]bool{}, units{}
		for n := range tree.Path(tree.Head()) {
			on[n.ID] = true
		}
		for e, err := range s.Originals(t.Context()) {
			testutil.OK(t, err)
			if n := all.of(interop.Format(res.Format), e); on[e.ID] {
				path += n
			} else {
				elsewhere += n
			}
		}
		u := testutil.Must(r.Session(t.Context(), s))(t)
		parts := []manager.Usage{u.Usage}
		if res.Format != string(interop.ClaudeCode) { // in its format, lines copied by agents are in another file
			parts = append(parts, u.Inherited)
		}
		for _, part := range parts {
			tokens += part.Input + part.Output + part.CacheRead + part.CacheWrite
		}
		testutil.OK(t, s.Close())
	}
	a.files++
	a.messages, a.path, a.elsewhere = a.messages+c.messages, a.path+path, a.elsewhere+elsewhere
	a.diagnostics, a.tokens = a.diagnostics+res.Remarks(), a.tokens+tokens
	if path+elsewhere == c.messages {
		a.exact++
	} else {
		t.Logf("%s: %d messages, %d on the path, %d elsewhere", f.Path, c.messages, path, elsewhere)
	}
	if tokens == c.tokens {
		a.exactTokens++
	} else {
		t.Logf("%s: %d tokens, counted %d", f.Path, tokens, c.tokens)
	}
}

// units counts the messages of a session as counted does those of a file.
type units struct {
	compaction string
	answers    map[string]bool // of Claude Code: an answer in several entries is one
}

func (u *units) of(f interop.Format, e transcript.Entry) int {
	switch {
	case e.Type != "message" && e.Type != "custom_message" && e.Type != "compaction" && e.Type != "branch_summary":
		return 0
	case f == interop.ClaudeCode:
		return u.answer(e)
	case f != interop.Codex:
		return 1
	case e.Type == "compaction":
		u.compaction = e.ID + "."
	case u.compaction != "" && strings.HasPrefix(e.ID, u.compaction):
		return 0 // the copied history
	}
	var o object
	if json.Unmarshal(e.Raw, &o) != nil {
		return 1
	}
	if strings.HasPrefix(o.text("customType"), "codex.image_generation") {
		return 0 // an image of an earlier item
	}
	if m := o.in("message"); m.text("role") == "assistant" {
		n, last := 0, ""
		for _, b := range m.list("content") {
			if id := b.text("textSignature"); id == "" || id != last {
				n++
			}
			last = b.text("textSignature")
		}
		return n
	}
	return 1
}

func (u *units) answer(e transcript.Entry) int {
	var o object
	if json.Unmarshal(e.Raw, &o) != nil {
		return 1
	}
	id := o.in("message").text("responseId")
	if u.answers[id] {
		return 0
	}
	if id != "" && u.answers == nil {
		u.answers = map[string]bool{}
	}
	if id != "" {
		u.answers[id] = true
	}
	return 1
}

// TestAccount prints, for the files of each program in a folder of COPPICE_ROUNDTRIP, a row of a table: the content of
// the files by a count without the readers, and the content of their sessions.
func TestAccount(t *testing.T) {
	folder := os.Getenv("COPPICE_ROUNDTRIP")
	if folder == "" {
		t.Skip("no COPPICE_ROUNDTRIP")
	}
	fmt.Println("| program | files | messages | on the head's path | on branches | diagnostics | " +
		"files with this sum | tokens | files with this sum |")
	for _, dir := range testutil.Must(os.ReadDir(folder))(t) {
		if !dir.IsDir() {
			continue
		}
		var a account
		var b importer.Batch
		for _, f := range importer.Find(t.Context(), []string{filepath.Join(folder, dir.Name())}) {
			if !b.Contains(f.Path) {
				a.take(t, &b, f)
			}
		}
		fmt.Printf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", dir.Name(), a.files, a.messages, a.path,
			a.elsewhere, a.diagnostics, a.exact, a.tokens, a.exactTokens)
	}
}
