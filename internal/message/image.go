package message

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// ImageLimits are the limits of an API on images. A Side of 0 is no limit.
type ImageLimits struct {
	Types    string // accepted types, without "image/"
	Still    bool   // animations are refused
	Encoded  int    // bytes of an image in base64
	Side     int    // pixels of its longer side
	Many     int    // maximum number of images for Side; with more, ManySide applies
	ManySide int    // pixels of the longer side
	Count    int    // images in a request
	Request  int    // bytes of a request
}

// The limits of the APIs, as documented in 2026. If a page and the API differ, the lower limit.
var (
	// AnthropicImages: https://platform.claude.com/docs/en/build-with-claude/vision. The 5 MB apply to the base64 text:
	// https://github.com/anthropics/claude-code/issues/19631.
	AnthropicImages = ImageLimits{
		Types: "png jpeg gif webp", Encoded: 5 << 20, Side: 8000, Many: 20, ManySide: 2000, Count: 100,
		Request: 32 << 20,
	}
	// OpenAIImages: https://platform.openai.com/docs/guides/images-vision, "Image input requirements".
	OpenAIImages = ImageLimits{
		Types: "png jpeg gif webp", Still: true, Encoded: 20 << 20, Count: 500, Request: 50 << 20,
	}
	// GeminiImages: https://ai.google.dev/gemini-api/docs/image-understanding, "Supported image formats", and the size
	// of a request with inline data: https://firebase.google.com/docs/ai-logic/input-file-requirements.
	GeminiImages = ImageLimits{Types: "png jpeg webp", Encoded: 20 << 20, Count: 3000, Request: 20 << 20}
	// AnyImages are the limits for a program that uses all of these APIs: every API refuses an image over them.
	AnyImages = ImageLimits{Types: "png jpeg gif webp", Encoded: 20 << 20}
)

// ImageSize is the size of an image in pixels, from its header.
type ImageSize struct{ Width, Height int }

// Over describes how an image exceeds a limit on its longer side; "" = it does not.
func (s ImageSize) Over(side int) string {
	if side <= 0 || max(s.Width, s.Height) <= side {
		return ""
	}
	return grouped(s.Width) + " x " + grouped(s.Height) + " pixels, at most " + grouped(side)
}

// Fault returns why an image in base64 cannot be sent, in a few words; "" = it can be. It decodes only the header.
func (l ImageLimits) Fault(mime, data string) (size ImageSize, fault string) {
	switch {
	case data == "":
		return size, "no bytes"
	case !IsBase64(data):
		return size, "not base64"
	case len(data) > l.Encoded:
		return size, grouped(len(data)) + " bytes in base64, at most " + grouped(l.Encoded)
	}
	typ, size, moves := readImageHeader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	switch {
	case size.Width <= 0 || size.Height <= 0:
		return size, "not a PNG, JPEG, GIF or WebP image"
	case mime != typ:
		return size, fmt.Sprintf("it is %s, and declared as %.99q", typ, mime)
	case !strings.Contains(l.Types, typ[len("image/"):]):
		return size, typ + ", which the API does not take"
	case moves && l.Still:
		return size, "an animation, which the API does not take"
	}
	return size, size.Over(l.Side)
}

// IsBase64 reports whether a text is base64 in the standard alphabet, with padding and without line breaks.
func IsBase64(s string) bool {
	coded := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	return len(s)%4 == 0 && isCoded(coded, "+/")
}

// IsSignature reports whether a JSON string can be a signature of a provider: base64 in one of its two alphabets, with
// or without padding.
func IsSignature(val []byte) bool {
	coded := strings.TrimRight(rawjson.Text(val), "=")
	return len(coded)%4 != 1 && (isCoded(coded, "+/") || isCoded(coded, "-_"))
}

// isCoded reports whether a text consists only of letters, digits and two more characters, and is not empty.
func isCoded(s, more string) bool {
	for i := range len(s) {
		b := s[i]
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != more[0] && b != more[1] {
			return false
		}
	}
	return s != ""
}

// grouped formats a number with a comma after each three digits.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// readImageHeader reads the type and the size of an image, and whether it is an animation. size is zero if r has no
// image of a known type.
func readImageHeader(r io.Reader) (typ string, size ImageSize, moves bool) {
	const most = 1 << 10 // enough to detect the animation of a GIF
	in := bufio.NewReaderSize(r, most)
	p, _ := in.Peek(most) // the available bytes
	short, long := binary.LittleEndian, binary.BigEndian
	switch {
	case len(p) < 30:
	case bytes.HasPrefix(p, []byte("\x89PNG\r\n\x1a\n")) && len(p) >= 33 && string(p[12:16]) == "IHDR" &&
		crc32.ChecksumIEEE(p[12:29]) == long.Uint32(p[29:]):
		return "image/png", ImageSize{int(int32(long.Uint32(p[16:]))), int(int32(long.Uint32(p[20:])))}, false
	case bytes.HasPrefix(p, []byte("GIF87a")), bytes.HasPrefix(p, []byte("GIF89a")):
		return "image/gif", ImageSize{int(short.Uint16(p[6:])), int(short.Uint16(p[8:]))},
			bytes.Contains(p, []byte("NETSCAPE2.0"))
	case bytes.HasPrefix(p, []byte("RIFF")) && string(p[8:12]) == "WEBP":
		return "image/webp", webpSize(p[12:]), false
	case bytes.HasPrefix(p, []byte("\xff\xd8\xff")):
		return "image/jpeg", jpegSize(in), false
	}
	return "", size, false
}

// webpSize returns the size of a WebP image from its first chunk, of at least 18 bytes.
func webpSize(p []byte) (s ImageSize) {
	const bits = 1<<14 - 1 // of a side
	switch string(p[:4]) {
	case "VP8 ":
		if string(p[11:14]) == "\x9d\x01\x2a" {
			s.Width, s.Height = int(p[14])|int(p[15])<<8, int(p[16])|int(p[17])<<8
			return ImageSize{s.Width & bits, s.Height & bits}
		}
	case "VP8L":
		if p[8] == 0x2f {
			sides := int(binary.LittleEndian.Uint32(p[9:]))
			return ImageSize{sides&bits + 1, sides>>14&bits + 1}
		}
	case "VP8X":
		return ImageSize{
			1 + int(p[12]) + int(p[13])<<8 + int(p[14])<<16, 1 + int(p[15]) + int(p[16])<<8 + int(p[17])<<16,
		}
	}
	return s
}

// jpegSize returns the size of a JPEG image: that of its first frame, which follows other segments.
func jpegSize(in *bufio.Reader) (s ImageSize) {
	_, err := in.Discard(2)
	for err == nil {
		var p []byte
		if p, err = in.Peek(2); err != nil {
			break
		}
		marker := p[1]
		switch {
		case p[0] != 0xff, marker == 0xda, marker == 0xd9: // no segment, the scan, the end
			return s
		case marker == 0xff: // fill
			_, err = in.Discard(1)
			continue
		}
		if p, err = in.Peek(9); err != nil {
			break
		}
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			return ImageSize{int(binary.BigEndian.Uint16(p[7:])), int(binary.BigEndian.Uint16(p[5:]))}
		}
		_, err = in.Discard(2 + max(2, int(binary.BigEndian.Uint16(p[2:]))))
	}
	return s
}
