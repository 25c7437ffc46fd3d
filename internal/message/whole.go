package message

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Whole is rawjson.Whole of a message or an entry. It also repairs JSON inside text fields: the arguments of calls, and
// the OpenAI items that pi stores as signatures, because providers put this JSON into a request.
func Whole(raw []byte) (out []byte, n int) {
	out, n = rawjson.Whole(raw)
	if !bytes.Contains(out, []byte(`\\ud`)) && !bytes.Contains(out, []byte(`\\uD`)) {
		return out, n
	}
	const deep = 8 // entry, message, content, block, function
	out, more := wholeFields(out, deep)
	return out, n + more
}

// wholeFields replaces unpaired surrogates in the JSON inside the fields of an object or of the objects in a list.
func wholeFields(val []byte, deep int) (out []byte, n int) {
	w := rawjson.Walk(val)
	object := w.Closing == '}'
	for deep > 0 && w.Next() {
		is, found := w.Val, 0
		if !rawjson.IsString(is) {
			is, found = wholeFields(is, deep-1)
		} else if key := string(w.Key); key == "arguments" || key == "thinkingSignature" {
			is, found = wholeText(is)
		}
		if n += found; len(out) > 0 {
			out = append(out, ',')
		}
		if object {
			out = rawjson.AppendKey(out, w.Key)
		}
		out = append(out, is...)
	}
	switch {
	case n == 0:
		return val, 0
	case object:
		return append(append([]byte{'{'}, out...), '}'), n
	}
	return append(append([]byte{'['}, out...), ']'), n
}

// wholeText is rawjson.Whole of the JSON in a string; any other text is unchanged.
func wholeText(val []byte) (out []byte, n int) {
	text := rawjson.AppendText(nil, val)
	if end, err := rawjson.ValueEnd(text, 0, rawjson.MaxDepth); err != nil || rawjson.Space(text, end) < len(text) {
		return val, 0
	}
	if text, n = rawjson.Whole(text); n == 0 {
		return val, 0
	}
	return rawjson.AppendString(nil, text), n
}
