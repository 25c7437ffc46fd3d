package message_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/message"
)

// encoded returns an image in base64, written by package image.
func encoded(t *testing.T, typ string, width, height int) string {
	t.Helper()
	var out bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	var err error
	switch typ {
	case "png":
		err = png.Encode(&out, img)
	case "jpeg":
		err = jpeg.Encode(&out, img, nil)
	case "gif":
		err = gif.Encode(&out, img, nil)
	case "moving gif":
		err = gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{img, img}, Delay: []int{1, 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// The reasons for refusing an image, with each of the types in order.
func TestFault(t *testing.T) {
	pic := func(typ string, width, height int) string { return encoded(t, typ, width, height) }
	raw := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tags := strings.Repeat("\xff\xe1\xff\xff"+strings.Repeat("e", 65533), 2) // longer than one read
	photo, err := base64.StdEncoding.DecodeString(pic("jpeg", 8001, 2))
	if err != nil {
		t.Fatal(err)
	}
	a, o, g := message.AnthropicImages, message.OpenAIImages, message.GeminiImages
	const none, flags, webp = "not a PNG, JPEG, GIF or WebP image", "\x00\x00\x00\x00", "RIFF\x16\x00\x00\x00WEBPVP8"
	const lossy = webp + " \x0a\x00\x00\x00\x30\x01\x00\x9d\x01\x2a"
	for name, tt := range map[string]struct {
		limits     message.ImageLimits
		mime, data string
		want       string
	}{
		"png":         {a, "image/png", pic("png", 8000, 3), ""},
		"jpeg":        {g, "image/jpeg", pic("jpeg", 20, 30), ""},
		"gif":         {a, "image/gif", pic("gif", 20, 30), ""},
		"gif, gemini": {g, "image/gif", pic("gif", 20, 30), "image/gif, which the API does not take"},
		"animation":   {a, "image/gif", pic("moving gif", 20, 30), ""},
		"animation, openai": {
			o, "image/gif", pic("moving gif", 20, 30), "an animation, which the API does not take",
		},
		"lossy webp": {a, "image/webp", raw(lossy + "\x40\x1f\x10\x80"), ""},
		"wide webp":  {a, "image/webp", raw(lossy + "\x41\x1f\x10\x80"), "8,001 x 16 pixels, at most 8,000"},
		"lossless webp": {
			a, "image/webp", raw(webp + "L\x0a\x00\x00\x00\x2f\xff\xff\xff\x01     "),
			"16,384 x 2,048 pixels, at most 8,000",
		},
		"long webp": {
			a, "image/webp", raw(webp + "X\x0a\x00\x00\x00" + flags + "\x01\x00\x00\xff\xff\x01"),
			"2 x 131,072 pixels, at most 8,000",
		},
		"wide jpeg": {
			a, "image/jpeg", raw(string(photo[:2]) + tags + string(photo[2:])),
			"8,001 x 2 pixels, at most 8,000",
		},
		"wide, openai": {o, "image/png", pic("png", 8001, 2), ""},
		"declared as another": {
			a, "image/jpeg", pic("png", 2, 2), `it is image/png, and declared as "image/jpeg"`,
		},
		"not an image": {a, "image/png", raw(strings.Repeat("no image ", 9)), none},
		"a short one":  {a, "image/png", "iVBORw0KGgo=", none},
		"a damaged one": {
			a, "image/png", raw("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x01", 20)),
			none,
		},
		"no bytes":     {a, "image/png", "", "no bytes"},
		"not base64":   {a, "image/png", pic("png", 2, 2)[:41], "not base64"},
		"a line break": {a, "image/png", pic("png", 2, 2) + "\r\n\r\n", "not base64"},
		"an address":   {a, "image/png", "file:///a.png", "not base64"},
		"too large": {
			a, "image/png", strings.Repeat("AAAA", 5<<18+1), "5,242,884 bytes in base64, at most 5,242,880",
		},
	} {
		if _, got := tt.limits.Fault(tt.mime, tt.data); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestIsSignature(t *testing.T) {
	for val, want := range map[string]bool{
		`"EqQ/+w=="`: true, `"gAAA_-8"`: true, `"QQ"`: true, `""`: false, `"A"`: false, `"a b"`: false, `"_/"`: false,
		`5`:                    false,
		`"reasoning_content!"`: false,
	} {
		if got := message.IsSignature([]byte(val)); got != want {
			t.Errorf("%s: %v", val, got)
		}
	}
}
