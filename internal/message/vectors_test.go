package message_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

var update = flag.Bool("update", false, "write testdata/vectors.json")

// vector is a message and its decoded form, as in web/model/message.ts, which must produce the same.
type vector struct {
	Name    string          `json:"name"`
	Message json.RawMessage `json:"message"`
	Want    decoded         `json:"want"`
}

type decoded struct {
	Speaker string `json:"speaker"`
	Failed  string `json:"failed,omitempty"` // the reason for a failed answer
	Tokens  int64  `json:"tokens,omitempty"`
	Parts   []part `json:"parts"`
}

type part struct {
	Kind   string          `json:"kind"`
	Text   string          `json:"text,omitempty"`
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Failed bool            `json:"failed,omitempty"`
	Insert bool            `json:"inserted,omitempty"`
	Type   string          `json:"type,omitempty"`  // of an image
	Data   string          `json:"data,omitempty"`  // of an image
	Parts  []part          `json:"parts,omitempty"` // images of a result
}

// TestVectors compares the decoded messages with testdata/vectors.json; with -update it writes them.
func TestVectors(t *testing.T) {
	const file = "testdata/vectors.json"
	var vectors []vector
	load(t, file, &vectors)
	for i, v := range vectors {
		got := decode(v.Message)
		if want, is := encode(t, v.Want), encode(t, got); !*update && !bytes.Equal(want, is) {
			t.Errorf("%s:\n got %s\nwant %s", v.Name, is, want)
		}
		vectors[i].Want = got
	}
	if !*update {
		return
	}
	var list []string
	for _, v := range vectors {
		list = append(list, fmt.Sprintf("  {\"name\": %s,\n   \"message\": %s,\n   \"want\": %s}",
			encode(t, v.Name), v.Message, encode(t, v.Want)))
	}
	if err := os.WriteFile(file, []byte("[\n"+strings.Join(list, ",\n")+"\n]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func decode(raw []byte) decoded {
	m := message.Decode(raw)
	d := decoded{
		Speaker: []string{"other", "user", "assistant", "tool", "system", "program", "summary"}[m.Speaker],
		Failed:  rawjson.Text(m.Stopped()), Tokens: message.UsageOf(raw).Total, Parts: []part{},
	}
	for i := range m.Blocks {
		d.Parts = append(d.Parts, partsOf(&m, &m.Blocks[i])...)
	}
	return d
}

func partsOf(m *message.Message, b *message.Block) []part {
	p := part{Kind: "other"}
	switch b.Kind {
	case message.Text:
		var list []part
		for _, piece := range m.Pieces(b.Text) {
			if piece.Text != "" {
				list = append(list, part{Kind: "text", Text: piece.Text, Insert: piece.Inserted})
			}
		}
		return list
	case message.Thinking:
		p.Kind, p.Text = "thinking", b.Thought().Text
	case message.Call:
		p.Kind, p.ID, p.Name = "call", rawjson.Text(b.Key()), rawjson.Text(b.Name)
		if p.Args = message.Arguments(b.Body); p.Args == nil || string(p.Args) == "null" {
			p.Args = []byte("{}") // as it is shown
		}
	case message.Result:
		p = resultOf(b)
	case message.Attached:
		if media := b.Media(); media.Image() {
			p = part{Kind: "image", Type: media.Mime, Data: media.Data}
		}
	case message.Command:
		name := strings.TrimSuffix(m.Role, "Execution")
		args := rawjson.Object("command", b.Text)
		return []part{
			{Kind: "call", Name: name, Args: args},
			{Kind: "result", Name: name, Text: rawjson.Text(b.Body), Failed: b.Failed},
		}
	case message.Unread:
	}
	return []part{p}
}

func resultOf(b *message.Block) part {
	p := part{Kind: "result", ID: rawjson.Text(b.Key()), Name: rawjson.Text(b.Name), Failed: b.Failed}
	var texts []string
	for c := b.Content(); c.Next(); {
		if c.Block.Kind == message.Text {
			texts = append(texts, rawjson.Text(c.Block.Text))
		}
		if media := c.Block.Media(); c.Block.Kind == message.Attached && media.Image() {
			p.Parts = append(p.Parts, part{Kind: "image", Type: media.Mime, Data: media.Data})
		}
	}
	p.Text = strings.Join(texts, "\n")
	return p
}

func TestMedia(t *testing.T) {
	var cases []struct {
		Block json.RawMessage
		Want  message.Media
	}
	load(t, "testdata/media.json", &cases)
	for _, tt := range cases {
		c := message.Content(rawjson.List([][]byte{tt.Block}))
		if !c.Next() || c.Block.Kind != message.Attached || c.Block.Media() != tt.Want {
			t.Errorf("%s: kind %d, %+v, want %+v", tt.Block, c.Block.Kind, c.Block.Media(), tt.Want)
		}
	}
}

func load(t testing.TB, file string, v any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// FuzzDecode: no input makes the decoder fail, whether it is JSON or not.
func FuzzDecode(f *testing.F) {
	var vectors []vector
	load(f, "testdata/vectors.json", &vectors)
	for _, v := range vectors {
		f.Add([]byte(v.Message))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := decode(raw)
		if json.Valid(raw) && len(d.Parts) > len(raw) {
			t.Errorf("%d parts in %d bytes", len(d.Parts), len(raw))
		}
	})
}
