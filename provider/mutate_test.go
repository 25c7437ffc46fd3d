package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// half is replaced by half a surrogate pair, which package json cannot write.
const half = "\uf8ff"

// badTexts replace texts, ids, names and data.
var badTexts = []string{
	half, "a" + half + "🌳" + half + half, "", " \n", "!not base64!", "iVBORw0KGgo", "AAAA", "1st.tool", "-x",
	strings.Repeat("n", 200), "naïve tool", "a b|c", "\u0000",
}

// badValues replace values of any type.
var badValues = []any{nil, 7.5, true, "text", []any{}, object{}, []any{nil}, object{"type": "text"}}

// mutated returns a session file with some other values in it.
func mutated(t *rapid.T, file []byte) []byte {
	lines := bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
	for range rapid.IntRange(1, 8).Draw(t, "mutations") {
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		var v any
		d := json.NewDecoder(bytes.NewReader(lines[i]))
		d.UseNumber()
		if d.Decode(&v) != nil {
			continue
		}
		out, err := json.Marshal(mutate(t, v))
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.SampledFrom([]string{`\ud83d`, `\udc00`, `\uD800`}).Draw(t, "half")
		lines[i] = bytes.ReplaceAll(out, []byte(half), []byte(at))
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// mutate changes one value in another, at any depth.
func mutate(t *rapid.T, v any) any {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			return v
		}
		names := slices.Sorted(maps.Keys(v))
		if rapid.IntRange(0, 30).Draw(t, "key") == 0 {
			v["k"+half] = half
			return v
		}
		name := rapid.SampledFrom(names).Draw(t, "member")
		if _, deep := v["message"]; deep && rapid.Bool().Draw(t, "deeper") {
			name = "message"
		}
		if name != "type" && name != "role" || rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
			v[name] = mutate(t, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 4).Draw(t, "add") == 0 {
			return append(v, anyImage(t))
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
		v[i] = mutate(t, v[i])
		return v
	case string:
		switch rapid.IntRange(0, 5).Draw(t, "text") {
		case 0:
			return rapid.SampledFrom(badValues).Draw(t, "value")
		case 1:
			return v + half
		case 2:
			return half + v
		}
		return rapid.SampledFrom(badTexts).Draw(t, "bad")
	}
	return rapid.SampledFrom(badValues).Draw(t, "value")
}

// anyImage is an image in the shape of any program, which may be broken, too large, or of another type.
func anyImage(t *rapid.T) any {
	data := rapid.SampledFrom([]string{
		"", "AQID", onePixel, onePixel + "\n", onePixel[:40], pngOf(9000, 12), pngOf(2001, 1), pngOf(1<<31-1, 1<<31-1),
		pngOf(0, 4), "R0lGODlhAQABAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==", "data:image/png;base64," + onePixel,
		"coppice-blob:sha256:aa", strings.Repeat("A", 8<<10), "UklGRhYAAABXRUJQVlA4WAoAAAAAAAAAHwAAHwAA",
	}).Draw(t, "data")
	mime := rapid.SampledFrom([]string{
		"image/png", "image/png", "image/gif", "image/webp", "image/jpg", "", "x" + half,
	}).Draw(t, "mime")
	return rapid.SampledFrom([]any{
		object{"type": "image", "data": data, "mimeType": mime},
		object{"type": "image", "source": object{"type": "base64", "media_type": mime, "data": data}},
		object{"type": "image", "source": object{"type": "url", "url": "http://x.example/" + mime}},
		object{"type": "document", "source": object{"type": "base64", "media_type": "application/pdf", "data": data}},
		object{"type": "input_image", "image_url": fmt.Sprintf("data:%s;base64,%s", mime, data)},
		object{"type": "image_url", "image_url": object{"url": fmt.Sprintf("data:%s;base64,%s", mime, data)}},
		object{"inlineData": object{"mimeType": mime, "data": data}},
	}).Draw(t, "image")
}

// pngOf returns the header of a PNG image of a size.
func pngOf(width, height uint32) string {
	raw, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		panic(err)
	}
	binary.BigEndian.PutUint32(raw[16:], width)
	binary.BigEndian.PutUint32(raw[20:], height)
	binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29]))
	return base64.StdEncoding.EncodeToString(raw)
}
