package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coppice-go/coppice/provider"
)

// onePixel is the header of an image, which is all that is read of one.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"

// values are the values of a request that the API looks at beyond their types. They share no code with the package.
type values struct {
	api    provider.API
	images int
	widest int // side of an image, in pixels
	bytes  int
}

// checkValues panics if a value of a request is one that its API refuses. What it accepts is documented in
// docs/provider.md.
func checkValues(r provider.Request) {
	body := r.Body()
	wholeText("the request", body)
	var all any
	must(json.Unmarshal(body, &all) == nil, "the request is not JSON")
	v := values{api: r.API, bytes: len(body)}
	v.walk("", all)
	if r.API == provider.Anthropic {
		must(v.images <= 100 && (v.images <= 20 || v.widest <= 2000), "%d images to %d pixels", v.images, v.widest)
	}
	most := map[provider.API]int{provider.Anthropic: 32 << 20, provider.Gemini: 20 << 20}[r.API]
	must(most == 0 || v.images == 0 || v.bytes <= most, "%d bytes", v.bytes)
}

// wholeText panics if JSON has bytes that are not UTF-8, or half a surrogate pair.
func wholeText(where string, raw []byte) {
	must(utf8.Valid(raw), "%s: not UTF-8", where)
	if !bytes.Contains(raw, []byte(`\u`)) {
		return
	}
	for _, m := range escapes.FindAllSubmatch(raw, -1) {
		var units []uint16
		for i := 0; i < len(m[1]); i += 6 {
			var n uint16
			_, err := fmt.Sscanf(string(m[1][i+2:i+6]), "%04x", &n)
			must(err == nil, "%s: escape %s", where, m[1])
			units = append(units, n)
		}
		for _, r := range utf16.Decode(units) {
			must(r != utf8.RuneError || slices.Contains(units, utf8.RuneError), "%s: half a pair in %s", where, m[1])
		}
	}
}

// escapes finds what is escaped: pairs of backslashes and other short escapes, or a run of units in UTF-16.
var escapes = regexp.MustCompile(`\\[^u]|((?:\\u[0-9a-fA-F]{4})+)`)

var sealed = regexp.MustCompile(`^[A-Za-z0-9+/_-]+=*$`)

// walk goes over a value, which is in a field.
func (v *values) walk(field string, val any) {
	switch val := val.(type) {
	case []any:
		for _, in := range val {
			v.walk(field, in)
		}
	case string:
		v.text(field, val)
	case object:
		v.object(val)
		for k, in := range val {
			if k != "input" && k != "args" && k != "response" { // of tools: what is in them is theirs
				v.walk(k, in)
			}
		}
	}
}

func (v *values) text(field, s string) {
	switch field {
	case "thoughtSignature", "signature", "encrypted_content":
		must(sealed.MatchString(s), "%s %q", field, s)
	case "arguments":
		wholeText(field, []byte(s))
	case "url", "image_url":
		if mime, data, ok := strings.Cut(s, ";base64,"); ok {
			v.image(strings.TrimPrefix(mime, "data:"), data)
		}
	}
}

func (v *values) object(o object) {
	mime, _ := o["media_type"].(string)
	if in, _ := o["mimeType"].(string); in != "" {
		mime = in
	}
	data, isText := o["data"].(string)
	switch {
	case o["type"] == "redacted_thinking":
		must(sealed.MatchString(data), "redacted %q", data)
	case isText && o["type"] == "url":
	case isText && (o["type"] == "base64" || o["mimeType"] != nil):
		if strings.HasPrefix(mime, "image/") {
			v.image(mime, data)
			return
		}
		_, err := base64.StdEncoding.DecodeString(data)
		must(err == nil && data != "", "%s of %q", mime, data)
	case o["type"] == "image" && v.api == provider.Anthropic:
		source, _ := o["source"].(object)
		must(source["type"] == "base64" || strings.HasPrefix(fmt.Sprint(source["url"]), "https://"), "image %v", source)
	}
}

func (v *values) image(mime, data string) {
	v.images++
	must(!strings.ContainsAny(data, "\r\n"), "a line break in base64")
	raw, err := base64.StdEncoding.DecodeString(data)
	must(err == nil, "image: %v", err)
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil && bytes.HasPrefix(raw, []byte("RIFF")) && len(raw) >= 30 && string(raw[8:16]) == "WEBPVP8X" {
		side := func(at int) int { return int(binary.LittleEndian.Uint32(raw[at:])&0xffffff) + 1 }
		format, err = "webp", nil
		config.Width, config.Height = side(24), int(raw[27])+int(raw[28])<<8+int(raw[29])<<16+1
	}
	must(err == nil && mime == "image/"+format, "%s: it is %s, %v", mime, format, err)
	v.widest = max(v.widest, config.Width, config.Height)
	must(v.api != provider.Gemini || format != "gif", "a gif")
	small := len(data) <= 5<<20 && v.widest <= 8000
	must(v.api != provider.Anthropic || small, "%d bytes, %d pixels", len(data), v.widest)
}
