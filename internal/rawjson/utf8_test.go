package rawjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
)

func TestCheckText(t *testing.T) {
	for text, want := range map[string]int64{
		"": -1, "plain": -1, "größe ⚓ 😀": -1, "\ufffd": -1, `"\ud800"`: -1, "\x00": -1,
		"\xff": 0, "caf\xe9": 3, "caf\xe9 noir": 3,
		"a\ufffdb\xc3": 5, "ok \xed\xa0\x80": 3, "\xc0\x80": 0, "\xf4\x90\x80\x80": 0,
	} {
		for _, err := range []error{rawjson.CheckText("label", text), rawjson.CheckText("label", []byte(text))} {
			bad, refused := errors.AsType[*codec.TextError](err)
			if refused != (want >= 0) || refused && (bad.Offset != want || bad.What != "label") {
				t.Errorf("%q: %v, want offset %d", text, err, want)
			}
		}
	}
}

// The replaced bytes are those that package json replaces.
func TestValidText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "größe ⚓ \ufffd": "größe ⚓ \ufffd", "caf\xe9\xe9 ": "caf\ufffd\ufffd ",
		"\xed\xa0\x80": "\ufffd\ufffd\ufffd", "\xe2\x80": "\ufffd\ufffd",
	} {
		var std string
		if err := json.Unmarshal([]byte(`"`+text+`"`), &std); err != nil || std != want {
			t.Fatalf("%q: package json has %q, %v", text, std, err)
		}
		if got := rawjson.ValidText([]byte(text)); string(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Only unpaired surrogates are replaced: package json reads the same from both.
func TestWhole(t *testing.T) {
	for val, want := range map[string]struct {
		text string
		n    int
	}{
		`"a"`: {`"a"`, 0}, `"\ud83d\ude42 \n\\ud83d"`: {`"\ud83d\ude42 \n\\ud83d"`, 0}, `"\ud83d"`: {`"\ufffd"`, 1},
		`"\ude42\ud83d"`: {`"\ufffd\ufffd"`, 2}, `"\ud83d\ud83d\ude42x"`: {`"\ufffd\ud83d\ude42x"`, 1},
		`"\\\uD83D\u00e9"`: {`"\\\ufffd\u00e9"`, 1}, `{"\udbff":"\ud83d\\"}`: {`{"\ufffd":"\ufffd\\"}`, 2},
		"\"\xed\xa0\x80\\ud800\"": {"\"\ufffd\ufffd\ufffd\\ufffd\"", 4}, `"\ufffd"`: {`"\ufffd"`, 0},
	} {
		was := []byte(val)
		got, n := rawjson.Whole(was)
		if string(got) != want.text || n != want.n || string(was) != val {
			t.Errorf("%s: %s, %d replaced; it was changed in place: %v", val, got, n, string(was) != val)
		}
		var a, b any
		err := errors.Join(json.Unmarshal(was, &a), json.Unmarshal(got, &b))
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: package json reads %v, and %v of %s, %v", val, a, b, got, err)
		}
	}
}
