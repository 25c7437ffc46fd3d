package rawjson_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// named is a text with a method of its own.
type named string

func (n named) MarshalText() ([]byte, error) { return []byte("n:" + string(n)), nil }

type inner struct {
	Deep string `json:"deep"`
}

type outer struct {
	inner
	Text   string `json:"text,omitempty"`
	Plain  string
	List   []any           `json:"list,omitempty"`
	Next   *outer          `json:"next,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
	Secret string          `json:"-"`
	hidden string
}

// Text that package json would replace is an error with its place; all other values are encoded as by package json.
func TestMarshalRefusesText(t *testing.T) {
	const bad = "caf\xe9"
	for _, tt := range []struct {
		v      any
		what   string // "" = valid
		offset int64
	}{
		{bad, "state", 3},
		{"\xff" + bad, "state", 0},
		{&outer{Text: bad}, "state.text", 3},
		{outer{Plain: bad}, "state.Plain", 3},
		{outer{inner: inner{bad}}, "state.deep", 3},
		{outer{List: []any{1, map[string]any{"x": []string{"", bad}}}}, "state.list[1].x[1]", 3},
		{outer{Next: &outer{Text: bad}}, "state.next.text", 3},
		{map[string]int{bad: 1}, "name in state", 3},
		{map[named]int{bad: 1}, "name in state", 5},
		{[]named{bad}, "state[0]", 5},
		{outer{Raw: json.RawMessage(`"` + bad + `"`)}, "state", 32},
		{json.RawMessage(`{ "a": "` + bad + `"}`), "state", 9},

		{outer{Secret: bad, hidden: bad, Text: "\ufffd"}, "", 0},
		{outer{Bytes: []byte(bad), Text: "\ufffd"}, "", 0},
		{outer{Raw: json.RawMessage(`"\ufffd \ud800 <&>"`)}, "", 0},
		{map[string]any{"\ufffd": nil, "t": true, "a": netip.MustParseAddr("::1")}, "", 0},
		{[]any{nil, (*outer)(nil), "größe \ufffd"}, "", 0},
		{nil, "", 0},
	} {
		p, err := rawjson.Marshal("state", tt.v)
		text, refused := errors.AsType[*codec.TextError](err)
		if refused != (tt.what != "") || refused && (text.What != tt.what || text.Offset != tt.offset) {
			t.Errorf("%#v: %v, want %q at %d", tt.v, err, tt.what, tt.offset)
		}
		if tt.what == "" && !json.Valid(p) {
			t.Errorf("%#v: %s, %v", tt.v, p, err)
		}
	}
}
