package claudecode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var now = readtest.Now

func options() interop.Options {
	return interop.Options{Now: now}
}

type session = readtest.Session

var source, kinds = readtest.Source, readtest.Kinds

func read(t testing.TB, text string) (session, *Reader) {
	t.Helper()
	return readFile(t, "s.jsonl", map[string]string{"s.jsonl": text})
}

func readFile(t testing.TB, name string, files map[string]string) (session, *Reader) {
	t.Helper()
	r := NewReader(source(name, files), options())
	return readtest.Read(t, r), r
}

// node is a line of a file under test.
type node struct {
	id, parent, typ string // parent "" = null
	content         string // JSON; "" = the id as text
	extra           string // more fields, each with a comma in front
	msg             string // the provider's id of the message
}

func (n node) line() string {
	parent := "null"
	if n.parent != "" {
		parent = fmt.Sprintf("%q", n.parent)
	}
	if n.content == "" {
		n.content = fmt.Sprintf(`[{"type":"text","text":%q}]`, n.id)
	}
	message := ""
	switch n.typ {
	case "user":
		message = `,"message":{"role":"user","content":` + n.content + `}`
	case "assistant":
		id := n.msg
		if id == "" {
			id = "msg_" + n.id
		}
		message = fmt.Sprintf(`,"message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":%s,"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":2}}`, id, n.content)
	}
	side := `,"isSidechain":false`
	if strings.Contains(n.extra, "isSidechain") {
		side = ""
	}
	return fmt.Sprintf(`{"parentUuid":%s%s,"userType":"external","cwd":"/w","sessionId":"s1","version":"2.0.1","gitBranch":"main","type":%q%s,"uuid":%q,"timestamp":"2026-01-01T00:00:00.000Z"%s}`,
		parent, side, n.typ, message, n.id, n.extra)
}

func file(nodes ...node) string {
	var b bytes.Buffer
	for _, n := range nodes {
		b.WriteString(n.line() + "\n")
	}
	return b.String()
}

func call(ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, id))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func result(ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"out-%s"}`, id, id))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func collectOne(t testing.TB, raw []byte) transcript.Line {
	t.Helper()
	l, err := transcript.ParseLine(raw)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
