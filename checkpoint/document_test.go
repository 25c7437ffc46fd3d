package checkpoint

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestDocumentEncode(t *testing.T) {
	tests := []struct {
		name string
		doc  Document
		want string
	}{
		{"empty", Document{}, `{}`},
		{"null state", Document{State: raw("null")}, `{"state":null}`},
		{"scalar state", Document{State: raw(" 1e400\n")}, `{"state":1e400}`},
		{"numbers stay", Document{State: raw(`[9007199254740993,-0,1.0,1,1E1,123456789012345678901234567890.5]`)}, `{"state":[9007199254740993,-0,1.0,1,1E1,123456789012345678901234567890.5]}`},
		{"white space goes", Document{State: raw("\t{ \"a b\" : [ 1 , 2 ] }\r\n"), Manager: raw(` "x y" `)}, `{"state":{"a b":[1,2]},"manager":"x y"}`},
		{"escapes stay", Document{State: raw(`"\u00e9é\ud800<b>&\u003c` + "\u2028" + `\/"`)}, `{"state":"\u00e9é\ud800<b>&\u003c` + "\u2028" + `\/"}`},
		{"bad UTF-8 stays", Document{State: raw("\"\xff\"")}, "{\"state\":\"\xff\"}"},
		{"keys stay", Document{State: raw(`{"":1,"~":2,"/":3,"":4}`)}, `{"state":{"":1,"~":2,"/":3,"":4}}`},
		{"explicit and empty", Document{Context: []transcript.Item{}}, `{"context":[]}`},
		{"items", Document{Context: []transcript.Item{{Entry: "a"}, {Message: raw(`{"role": "user"}`)}}, Branch: `b"<`}, `{"context":[{"entry":"a"},{"message":{"role":"user"}}],"branch":"b\"<"}`},
		{"settings", Document{Settings: transcript.Settings{Model: "p/m", Mode: "plan"}}, `{"settings":{"model":"p/m","mode":"plan"}}`},
		{"docs in order", Document{Docs: map[string]json.RawMessage{"b": raw(" [1, 2]"), "a/x": raw("{}"), "B:1": raw("0")}}, `{"docs":{"B:1":0,"a/x":{},"b":[1,2]}}`},
		{"no docs", Document{Branch: "b", Docs: map[string]json.RawMessage{}}, `{"branch":"b"}`},
		{"settings and docs", Document{Settings: transcript.Settings{Mode: "m"}, Docs: map[string]json.RawMessage{"a": raw("1")}}, `{"settings":{"mode":"m"},"docs":{"a":1}}`},
		{"all", Document{State: raw("1"), Manager: raw("2"), Context: []transcript.Item{{Entry: "e"}}, Branch: "main", Settings: transcript.Settings{ThinkingLevel: "high"}, Docs: map[string]json.RawMessage{"a": raw("3")}}, `{"state":1,"manager":2,"context":[{"entry":"e"}],"branch":"main","settings":{"thinkingLevel":"high"},"docs":{"a":3}}`},
	}
	for _, tt := range tests {
		got, err := tt.doc.Encode()
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
			continue
		}
		back, err := DecodeDocument(got)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		again, err := back.Encode()
		if err != nil || string(again) != tt.want {
			t.Errorf("%s: decoded and encoded again: %s, %v", tt.name, again, err)
		}
		if (back.Context == nil) != (tt.doc.Context == nil) || (back.State == nil) != (tt.doc.State == nil) {
			t.Errorf("%s: nil and empty are mixed up: %+v", tt.name, back)
		}
	}
}

// levels returns JSON of a depth.
func levels(depth int) json.RawMessage {
	return raw(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

func TestDocumentRefuses(t *testing.T) {
	big := raw(`"` + strings.Repeat("x", MaxState-1) + `"`)
	tests := []struct {
		name  string
		doc   Document
		limit *codec.LimitError
	}{
		{"state size", Document{State: big}, &codec.LimitError{What: "state", Limit: 4194304, Value: 4194305}},
		{"manager size", Document{Manager: big}, &codec.LimitError{What: "manager", Limit: 4194304, Value: 4194305}},
		{"depth of a state", Document{State: levels(510)}, &codec.LimitError{What: "nesting of JSON", Limit: 509, Value: 510}},
		{"depth of a manager", Document{Manager: levels(510)}, &codec.LimitError{What: "nesting of JSON", Limit: 509, Value: 510}},
		{"depth of a document", Document{Docs: map[string]json.RawMessage{"d": levels(509)}}, &codec.LimitError{What: "nesting of JSON", Limit: 508, Value: 509}},
		{"depth of a message", Document{Context: []transcript.Item{{Message: levels(508)}}}, &codec.LimitError{What: "nesting of JSON", Limit: 507, Value: 508}},
		{"no JSON", Document{State: raw("{")}, nil},
		{"two values", Document{State: raw("1 2")}, nil},
		{"empty item", Document{Context: []transcript.Item{{}}}, nil},
		{"NUL", Document{State: raw("1\x00")}, nil},
	}
	for _, tt := range tests {
		_, err := tt.doc.Encode()
		var limit *codec.LimitError
		switch {
		case tt.limit == nil && !errors.Is(err, codec.ErrFormat):
			t.Errorf("%s: %v", tt.name, err)
		case tt.limit != nil && (!errors.As(err, &limit) || *limit != *tt.limit):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	p, err := Document{
		State: levels(MaxStateDepth), Manager: levels(MaxStateDepth),
		Docs: map[string]json.RawMessage{"d": levels(MaxDocDepth)}, Context: []transcript.Item{{Message: levels(MaxItemDepth)}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeDocument(p); err != nil {
		t.Errorf("a document of the greatest depth: %v", err)
	}
	r := plainRecord()
	r.Doc = p
	if line, _, err := r.AppendLine(nil, 1, 2, nil); err != nil {
		t.Errorf("a commit line with it: %v", err)
	} else if _, ours, err := ParseRecord(line, 1); !ours || err != nil {
		t.Errorf("and back: %v, %v", ours, err)
	} else if _, err := transcript.ParseLine(line); err != nil {
		t.Errorf("the line is not one of a log: %v", err)
	}
	// Earlier releases wrote deeper documents.
	older := `{"state":` + string(levels(MaxDepth)) + `}`
	if d, err := DecodeDocument([]byte(older)); err != nil || len(d.State) != 2*MaxDepth {
		t.Errorf("a deeper document: %v", err)
	}
}

func TestDecodeDocumentIsStrict(t *testing.T) {
	for _, s := range []string{
		``, `[]`, `null`, `{`, `{ }`, `{} `, `{"state":}`, `{"state": 1}`, `{"state":1,}`, `{,"state":1}`, `{"manager":1,"state":1}`,
		`{"state":1,"state":2}`, `{"x":1}`, `{"branch":""}`, `{"branch":1}`, `{"settings":{}}`, `{"settings":{"mode":"a","model":"b"}}`,
		`{"context":null}`, `{"context":[,]}`, `{"context":[{}]}`, `{"context":[{"entry":""}]}`, `{"context":[{"entry":"a"},]}`,
		`{"context":[{"message":1,"entry":"a"}]}`, `{"branch":"\u0061"}`, `{"state":01}`,
		`{"docs":{}}`, `{"docs":{"b":1,"a":2}}`, `{"docs":{"a":1,"a":1}}`, `{"docs":{"a b":1}}`, `{"docs":{"":1}}`, `{"docs":{"a":1},"settings":{"mode":"x"}}`,
		`{"docs":{"a":}}`, `{"docs":{"a":1,}}`, `{"docs":{"a":1}`, `{"docs":{"\u0061":1}}`, `{"docs":null}`, `{"docs":{"a": 1}}`,
		`{"docs":{"a":"` + strings.Repeat("x", MaxDoc) + `"}}`, `{"docs":{"` + strings.Repeat("n", MaxDocName+1) + `":1}}`,
		`{"partial":}`, `{"partial":1,"settings":{"mode":"a"}}`, `{"partial":"` + strings.Repeat("x", MaxPartial) + `"}`,
	} {
		if d, err := DecodeDocument([]byte(s)); err == nil {
			t.Errorf("%s reads as %+v", s, d)
		}
	}
	d, err := DecodeDocument([]byte(`{"context":[{"entry":"a","message":{}}]}`))
	if want := []transcript.Item{{Entry: "a", Message: raw(`{}`)}}; err != nil || !reflect.DeepEqual(d.Context, want) {
		t.Errorf("%+v, %v", d, err)
	}
}

// Partial output, which earlier releases wrote, is read and ignored.
func TestDecodeDocumentIgnoresPartial(t *testing.T) {
	for text, want := range map[string]string{
		`{"partial":{"partial":"so far"}}`:                                               `{}`,
		`{"state":{"partial":1},"branch":"main","partial":["\u00e9"]}`:                   `{"state":{"partial":1},"branch":"main"}`,
		`{"docs":{"a":3},"partial":"` + strings.Repeat("x", MaxPartial-len(`""`)) + `"}`: `{"docs":{"a":3}}`,
	} {
		d, err := DecodeDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Encode(); err != nil || string(got) != want {
			t.Errorf("%.99s is written again as %s, %v", text, got, err)
		}
	}
}
