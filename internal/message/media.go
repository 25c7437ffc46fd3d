package message

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Media is an image or a document.
type Media struct {
	Name string // or the URL; "" = none
	Mime string // "" = unknown. Of some documents it is the format
	Data string // the bytes in base64, unchecked, or a reference to them; "" = stored elsewhere
	URL  string // their location; "" = unknown
	Text string // of a text document; "" = not text
	Size int64  // in bytes; -1 = unknown
}

// Image reports whether it is an image with data.
func (m Media) Image() bool { return m.Data != "" && strings.HasPrefix(m.Mime, "image/") }

// Media returns the image or document of a block.
func (b *Block) Media() Media {
	f := func(raw []byte, names ...string) string { return rawjson.Text(First(raw, names...)) }
	raw := b.Raw
	m := Media{Size: -1}
	in, own := Object(raw, "inlineData", "inline_data"), Object(raw, "image", "document")
	switch {
	case in != nil: // Gemini
		m.Mime, m.Data = f(in, "mimeType", "mime_type"), f(in, "data")
	case Object(raw, "fileData") != nil: // Gemini
		in = Object(raw, "fileData")
		m.URL, m.Mime = f(in, "fileUri"), f(in, "mimeType")
	case own != nil: // Bedrock
		m.Name, m.Mime, m.Data = f(own, "name"), f(own, "format"), f(Object(own, "source"), "bytes")
		if Object(raw, "image") != nil && m.Mime != "" {
			m.Mime = "image/" + m.Mime
		}
	case b.Type == "file" || b.Type == "input_file": // OpenAI
		if in = Object(raw, "file"); in == nil {
			in = raw
		}
		m.Name = cmp.Or(f(in, "filename"), f(in, "file_id"))
		m.place(f(in, "file_data"))
	case rawjson.Field(raw, "image_url") != nil: // OpenAI
		url := f(raw, "image_url")
		if in = Object(raw, "image_url"); in != nil {
			url = f(in, "url")
		}
		m.place(url)
		m.Name, m.Mime = f(raw, "file_id"), cmp.Or(m.Mime, "image")
	default: // Anthropic, pi
		m.sourced(raw)
	}
	m.Name = cmp.Or(m.Name, m.URL)
	if m.Data != "" {
		m.Size = int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(m.Data, "="))))
	}
	return m
}

// sourced reads images and documents of Anthropic, and images of pi.
func (m *Media) sourced(raw []byte) {
	f := func(raw []byte, names ...string) string { return rawjson.Text(First(raw, names...)) }
	m.Name = cmp.Or(f(raw, "title"), f(raw, "filename"), f(raw, "name"))
	src := Object(raw, "source")
	if src == nil {
		m.place(f(raw, "url"))
		m.Mime = cmp.Or(f(raw, "mimeType", "mime_type", "media_type", "mediaType"), m.Mime)
		m.Data = cmp.Or(f(raw, "data"), m.Data)
		return
	}
	m.Mime, m.Data = f(src, "media_type", "mimeType", "mime_type", "mediaType"), f(src, "data")
	switch {
	case f(src, "type") == "text":
		m.Text, m.Data, m.Size = m.Data, "", int64(len(m.Data))
	case m.Data == "":
		m.URL = f(src, "url")
		m.Name = cmp.Or(m.Name, f(src, "file_id"))
	}
}

// place reads the address of an image or a file: a data URL, or a location.
func (m *Media) place(url string) {
	if head, data, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		m.Mime, m.Data = head[len("data:"):], data
		return
	}
	m.URL = url
}
