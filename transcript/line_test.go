package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// referenceLine is ParseLine by means of encoding/json alone.
func referenceLine(raw []byte) (Line, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	depth := 0
	for {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > rawjson.MaxDepth {
				return Line{}, false
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	fields := map[string]json.RawMessage{}
	if !json.Valid(raw) || bytes.TrimLeft(raw, " \t\r\n")[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return Line{}, false
	}
	str := func(name string) (s string, ok bool) {
		v := fields[name]
		if len(v) == 0 || v[0] != '"' {
			return "", false
		}
		return s, json.Unmarshal(v, &s) == nil
	}
	l := Line{Raw: raw}
	l.Type, _ = str("type")
	l.ID, _ = str("id")
	l.ParentID, l.HasParent = str("parentId")
	if s, ok := str("timestamp"); ok {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			l.Time = t.UTC()
		}
	} else {
		l.Time = rawjson.Time(fields["timestamp"])
	}
	return l, true
}

func sameAsReference(t *testing.T, raw []byte) {
	t.Helper()
	want, ok := referenceLine(raw)
	got, err := ParseLine(raw)
	if ok != (err == nil) {
		t.Fatalf("ParseLine(%.200q): error %v, encoding/json says valid=%v", raw, err, ok)
	}
	if err != nil {
		if !errors.Is(err, ErrLine) {
			t.Fatalf("ParseLine(%.200q): error %v does not wrap ErrLine", raw, err)
		}
		return
	}
	if got.Type != want.Type || got.ID != want.ID || got.ParentID != want.ParentID ||
		got.HasParent != want.HasParent || !got.Time.Equal(want.Time) || !bytes.Equal(got.Raw, raw) {
		t.Fatalf("ParseLine(%.200q)\n got %+v\nwant %+v", raw, got, want)
	}
}

func nested(open, mid, end string, depth int) string {
	return strings.Repeat(open, depth) + mid + strings.Repeat(end, depth)
}

var lineSeeds = []string{
	`{"type":"message","id":"a1b2c3d4","parentId":null,"timestamp":"2025-11-20T23:33:50.805Z","message":{"role":"user","content":"hi"}}`,
	`{"type":"custom","id":"0192f3a0-0000-7000-8000-000000000001","parentId":"a1b2c3d4","timestamp":"2026-02-28T00:00:00.000Z","customType":"coppice.commit","data":{"seq":1}}`,
	`{"type":"message","timestamp":"2024-02-29T12:00:00Z","message":{}}`,
	`{"message":{"id":"inner","type":"x","deep":[{"id":1},[[]]]},"type":"message","id":"outer","parentId":"p"}`,
	`{"id":"first","id":"second","parentId":"a","parentId":5,"type":null,"type":"t"}`,
	`{"id":"first","id":7,"type":"a","type":{}}`,
	"{\"\\u0069d\":\"escaped key\",\"type\":\"\\u006d\\n\\\"\\\\\\/\\ud83d\\ude00\\ud800\"}",
	"{\"id\":\"caf\u00e9 \u65e5\u672c \U0001f333\",\"type\":\"\u2028\"}",
	"{\"id\":\"bad utf8 \xff\xfe\",\"\xffid\":1}",
	"{\"id\":\"nul \x00\"}", `{"id":"nul \u0000"}`, "\x00\x00\x00", "{\"id\":\"tab\there\"}",
	"\ufeff{}", "{}", " \t\r\n{ \"id\" : \"spaced\" , \"n\" : [ 1 , 2 ] } \r\n", "{}\r", "{} {}", "{}x",
	`[]`, `null`, `"x"`, `5`, ``, ` `, `{`, `{"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{1:2}`,
	`{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":{]}`, `{"a":}`,
	`{"a":01}`, `{"a":-}`, `{"a":-0}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1E+5}`, `{"a":1.5e-7}`, `{"a":+1}`, `{"a":NaN}`, `{"a":0x1}`,
	`{"a":tru}`, `{"a":true}`, `{"a":falsey}`, `{"a":nul`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\`, `{"a":"\"`,
	`{"timestamp":1735689600000}`, `{"timestamp":1735689600.5}`, `{"timestamp":-1}`, `{"timestamp":1e400}`, `{"timestamp":true}`,
	`{"timestamp":"2025-02-29T00:00:00.000Z"}`, `{"timestamp":"2025-13-01T00:00:00.000Z"}`, `{"timestamp":"2025-12-31T23:59:60.000Z"}`,
	`{"timestamp":"2025-12-31T23:59:59.999+02:00"}`, `{"timestamp":"0000-01-01T00:00:00.000Z"}`, `{"timestamp":"yesterday"}`,
	`{"Type":"no","ID":"no","parentid":"no"}`,
	nested(`{"a":`, `1`, `}`, 512), nested(`{"a":`, `1`, `}`, 513), `{"a":` + nested("[", "", "]", 511) + `}`, `{"a":` + nested("[", "", "]", 512) + `}`,
	nested("[", "", "]", 100000), strings.Repeat("[", 100000), `{"a":` + nested(`[{"b":`, `[]`, `}]`, 200) + `,"id":"after"}`,
	`{"pad":"` + strings.Repeat("x", 100) + `\"` + strings.Repeat("y", 7) + `","id":"behind"}`,
}

func TestParseLine(t *testing.T) {
	for _, s := range lineSeeds {
		sameAsReference(t, []byte(s))
		for cut := range min(len(s), 200) { // every truncation of it
			sameAsReference(t, []byte(s[:cut]))
		}
	}
}

// Every place of a word, every special byte at every place: the eight-byte steps must see them all.
func TestParseLineAlignments(t *testing.T) {
	for pad := range 18 {
		for _, c := range []string{`"`, `\`, `\\`, `\"`, "\x1f", " ", "\x7f", "\x80", "\xff", "!", "\u00e9", `\u0041`} {
			for _, tail := range []string{"", "z", "zzzzzzzz", "\u00e9\u00e9\u00e9\u00e9\u00e9", "!!!!!!!!!"} {
				s := `{"` + strings.Repeat("a", pad) + `k":"` + strings.Repeat("!", pad) + c + tail + `","id":"x"}`
				sameAsReference(t, []byte(s))
			}
		}
	}
}

// Lines put together from tokens reach states that bytes at random hardly ever do.
func TestParseLineTokens(t *testing.T) {
	tokens := []string{
		"{", "}", "[", "]", ",", ":", `"type"`, `"id"`, `"parentId"`, `"timestamp"`, `"a"`, `"\u0069d"`, `"x\"y"`, `""`, "null", "true", "-1.5e3", "0", "01",
		`"2026-01-01T00:00:00.000Z"`, " ", "\t", `"`, `\`, "\x00", "é", `{"id":"in"}`, `[{}]`, `"id":"v"`, `,"id":"w"`, `"type":null`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 12).Draw(rt, "tokens")
		sameAsReference(t, []byte("{"+strings.Join(parts, "")+"}"))
		members := rapid.SliceOfN(rapid.SampledFrom([]string{
			`"id":"v"`, `"id":7`, `"\u0069d":"e"`, `"type":"t"`, `"type":{"id":"in"}`, `"parentId":null`, `"parentId":"p"`, `"parentId":[{"id":"x"}]`,
			`"timestamp":"2026-01-01T00:00:00.000Z"`, `"timestamp":1767225600000`, `"z":[1,{"type":"no"},"\\"]`, ` "ws" : { } `,
		}), 0, 8).Draw(rt, "members")
		sameAsReference(t, []byte("{"+strings.Join(members, ",")+"}"))
	})
}

func FuzzParseLine(f *testing.F) {
	for _, s := range lineSeeds {
		if len(s) < 4096 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) { sameAsReference(t, raw) })
}

func TestDraftLine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	tests := []struct {
		name, id, parent string
		draft            Draft
		want, err        string
	}{
		{
			name: "canonical", id: "i1", parent: "p1", draft: Draft{Type: "message", Body: json.RawMessage(` { "message" : {"n": 12345678901234567890.10, "t":"<é>"} } `)},
			want: `{"type":"message","id":"i1","parentId":"p1","timestamp":"2026-01-02T02:04:05.678Z","message":{"n":12345678901234567890.10,"t":"<é>"}}`,
		},
		{
			name: "a root without a body", id: "i1", draft: Draft{Type: "leaf"},
			want: `{"type":"leaf","id":"i1","parentId":null,"timestamp":"2026-01-02T02:04:05.678Z"}`,
		},
		{
			name: "an empty body, own id and time", draft: Draft{Type: "x", ID: "own", Time: time.Unix(0, 0), Body: json.RawMessage("{ }")},
			want: `{"type":"x","id":"own","parentId":null,"timestamp":"1970-01-01T00:00:00.000Z"}`,
		},
		{
			name: "quotes in ids", id: "a\"b\\c\n\u00e9", draft: Draft{Type: "x"},
			want: `{"type":"x","id":"a\"b\\c\n` + "\u00e9" + `","parentId":null,"timestamp":"2026-01-02T02:04:05.678Z"}`,
		},
		{name: "raw", id: "other", draft: Draft{Raw: []byte("{ \"id\":\"r\", \"type\":\"x\" }\r")}, want: "{ \"id\":\"r\", \"type\":\"x\" }\r"},
		{name: "raw with its newline", draft: Draft{Raw: []byte("{\"id\":\"r\",\"type\":\"x\"}\n")}, want: `{"id":"r","type":"x"}`},
		{name: "raw of two lines", draft: Draft{Raw: []byte("{\"id\":\"r\",\n\"type\":\"x\"}")}, err: "more than one line"},
		{name: "raw without id", draft: Draft{Raw: []byte(`{"type":"x"}`)}, err: "without a type or an id"},
		{name: "raw no object", draft: Draft{Raw: []byte(`[1]`)}, err: "no JSON object"},
		{name: "raw broken", draft: Draft{Raw: []byte(`{"type":"x","id":"r"`)}, err: "unexpected end"},
		{name: "raw with an endless id", draft: Draft{Raw: []byte(`{"type":"x","id":"` + strings.Repeat("i", 70000) + `"}`)}, err: "at most"},
		{name: "no id", draft: Draft{Type: "x"}, err: "must be set"},
		{name: "no type", id: "i", err: "must be set"},
		{name: "body no object", id: "i", draft: Draft{Type: "x", Body: json.RawMessage(`"s"`)}, err: "no JSON object"},
		{name: "body broken", id: "i", draft: Draft{Type: "x", Body: json.RawMessage(`{"a":1`)}, err: "unexpected end"},
		{name: "body and more", id: "i", draft: Draft{Type: "x", Body: json.RawMessage(`{"a":1}{}`)}, err: "body"},
		{name: "body sets the id", id: "i", draft: Draft{Type: "x", Body: json.RawMessage(`{"a":1,"i\u0064":"j"}`)}, err: `sets "id"`},
		{name: "body too deep", id: "i", draft: Draft{Type: "x", Body: json.RawMessage(nested(`{"a":`, `1`, `}`, 513))}, err: "512 levels"},
		{name: "id no UTF-8", id: "\xff", draft: Draft{Type: "x"}, err: "UTF-8"},
		{name: "year", id: "i", draft: Draft{Type: "x", Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, err: "year"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.draft.Line(tt.id, tt.parent, now)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err != "" && (!errors.Is(err, ErrLine) || !strings.Contains(err.Error(), tt.err) || got != nil):
				t.Fatalf("got %q, error %v, want an ErrLine with %q", got, err, tt.err)
			case string(got) != tt.want:
				t.Fatalf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
	own := errors.New("made wrong")
	if _, err := (Draft{Raw: []byte("{}"), Err: own}).Line("i", "", now); !errors.Is(err, own) {
		t.Errorf("a draft's own error: got %v", err)
	}
}

func TestEntryMessage(t *testing.T) {
	e := Entry{ID: "e1", Type: "message", Raw: json.RawMessage(`{"type":"message","message":{"role":"user","content":"hi","x":1.50}}`)}
	m, ok := e.Message()
	if !ok || m.Entry != "e1" || m.Role != "user" || m.Text() != "hi" || string(m.Raw) != `{"role":"user","content":"hi","x":1.50}` {
		t.Errorf("got %+v %v", m, ok)
	}
	var v struct{ X json.Number }
	if err := m.Decode(&v); err != nil || v.X != "1.50" {
		t.Errorf("decode: %v %v", v, err)
	}
	var head struct{ Type string }
	if err := e.Decode(&head); err != nil || head.Type != "message" {
		t.Errorf("decode: %v %v", head, err)
	}
	for _, raw := range []string{`{"type":"message"}`, `{"message":"text"}`, `{"message":null}`, `not json`, ``} {
		e := Entry{Type: "message", Raw: json.RawMessage(raw)}
		if m, ok := e.Message(); ok {
			t.Errorf("%s: got a message %+v", raw, m)
		}
	}
	e.Type = "custom"
	if _, ok := e.Message(); ok {
		t.Error("a custom entry gave a message")
	}
	if err := (Entry{ID: "e", Raw: json.RawMessage("{")}).Decode(&head); err == nil || !strings.Contains(err.Error(), "decode entry e") {
		t.Errorf("got %v", err)
	}
}

func TestNewID(t *testing.T) {
	r := bytes.NewReader(bytes.Repeat([]byte{0xff}, 16))
	at := time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC)
	id, err := NewID(at, r)
	if err != nil || id != "019b7ca9-906f-7fff-bfff-ffffffffffff" {
		t.Errorf("got %s, %v", id, err)
	}
	later, err := NewID(at.Add(1), r)
	if err != nil || later <= id {
		t.Errorf("%s does not sort behind %s (%v)", later, id, err)
	}
	if _, err := NewID(at, r); err == nil {
		t.Error("no randomness and no error")
	}
}

// benchLines is a session as it looks in real files: text with line breaks, calls, long results.
func benchLines() [][]byte {
	var lines [][]byte
	word := "the quick brown fox jumps over the lazy dog; "
	for i := range 200 {
		text := strings.Repeat(strings.Repeat(word, 2)+"\n", 1+i%40)
		body, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		lines = append(lines, fmt.Appendf(nil,
			`{"type":"message","id":"%08x","parentId":"%08x","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"toolResult","toolCallId":"toolu_%d","toolName":"read","content":[{"type":"text","text":%s}],"isError":false,"timestamp":1767225600000}}`,
			i+1, i, i, body))
	}
	return lines
}

// BenchmarkScan sets the scanner against encoding/json, which reads the same four fields.
func BenchmarkScan(b *testing.B) {
	lines := benchLines()
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	b.Run("ParseLine", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, l := range lines {
				if _, err := ParseLine(l); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("ParseLine+Row", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, l := range lines {
				h, err := ParseLine(l)
				if err != nil {
					b.Fatal(err)
				}
				_ = RowOf(h, 0)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, l := range lines {
				var h struct {
					Type, ID  string
					ParentID  *string
					Timestamp time.Time
				}
				if err := json.Unmarshal(l, &h); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
