package message

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// attachment is how the providers write documents, and images that are not pi's.
type attachment struct {
	Title      string          `json:"title"`
	Filename   string          `json:"filename"`
	FileData   json.RawMessage `json:"file_data"` // OpenAI: a data URL
	FileID     string          `json:"file_id"`
	Attached   *Block          `json:"file"`     // OpenAI, chat completions
	GeminiFile *Block          `json:"fileData"` // Gemini
	URI        string          `json:"fileUri"`
	InlineData *Block          `json:"inlineData"` // Gemini
	Document   *Block          `json:"document"`   // Bedrock
	Picture    *Block          `json:"image"`      // Bedrock
	Format     string          `json:"format"`
	ImageURL   json.RawMessage `json:"image_url"` // OpenAI: a string, or an object with one
}

// File describes a document or an image to people, without its bytes.
type File struct {
	Name string // "" = it has none
	Mime string // "" = not said
	Size int64  // in bytes; -1 = not said
}

// Image returns the kind of an image and its bytes in base64, unchecked. false: the part is none, or its bytes are
// elsewhere.
func (b Block) Image() (mime, data string, ok bool) {
	if in := b.InlineData; in != nil {
		return in.Mime, in.Data, strings.HasPrefix(in.Mime, "image/")
	}
	if url := b.imageURL(); url != "" {
		return dataURL(url)
	}
	if src := b.Source; src != nil && b.Data == "" {
		b.Data, b.Mime = src.Data, src.Mime
	}
	return b.Mime, b.Data, b.Type == "image" && b.Data != ""
}

// imageURL returns where OpenAI's image is.
func (b Block) imageURL() string {
	var outside struct {
		URL string `json:"url"`
	}
	lenient(b.ImageURL, &outside)
	if outside.URL == "" {
		lenient(b.ImageURL, &outside.URL)
	}
	return outside.URL
}

// dataURL takes a data URL apart.
func dataURL(url string) (mime, data string, ok bool) {
	head, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return "", "", false
	}
	return head, data, true
}

// File describes a document, an attachment, or an image whose bytes are elsewhere. false: the part is none of these.
func (b Block) File() (File, bool) {
	switch {
	case b.GeminiFile != nil:
		return File{Name: b.GeminiFile.URI, Mime: b.GeminiFile.Mime, Size: -1}, true
	case b.InlineData != nil:
		return File{Mime: b.InlineData.Mime, Size: decoded(b.InlineData.Data)}, true
	case b.Document != nil:
		return b.Document.kept(), true
	case b.Picture != nil:
		return b.Picture.kept(), true
	case b.Type == "file" && b.Attached != nil:
		return b.Attached.attached(), true
	case b.Type == "input_file":
		return b.attached(), true
	case b.Type == "document", b.Type == "image":
		return b.sourced(), true
	case len(b.ImageURL) > 0:
		return b.pictured(), true
	}
	return File{}, false
}

// attached describes OpenAI's files.
func (b Block) attached() File {
	f := File{Name: cmp.Or(b.Filename, b.FileID), Size: -1}
	var url string
	lenient(b.FileData, &url)
	if mime, data, ok := dataURL(url); ok {
		f.Mime, f.Size = mime, decoded(data)
	}
	return f
}

// kept describes Bedrock's documents and images, which name their format.
func (b Block) kept() File {
	f := File{Name: b.Name, Mime: b.Format, Size: -1}
	if b.Source != nil && b.Source.Bytes != "" {
		f.Size = decoded(b.Source.Bytes)
	}
	return f
}

// sourced describes Anthropic's documents and images, and of pi's images.
func (b Block) sourced() File {
	f := File{Name: cmp.Or(b.Title, b.Filename, b.Name), Mime: b.Mime, Size: -1}
	switch src := b.Source; {
	case src == nil:
		if b.Data != "" {
			f.Size = decoded(b.Data)
		}
	case src.Type == "text":
		f.Mime, f.Size = src.Mime, int64(len(src.Data))
	case src.Data != "":
		f.Mime, f.Size = src.Mime, decoded(src.Data)
	default:
		f.Name, f.Mime = cmp.Or(f.Name, src.URL, src.File), src.Mime
	}
	return f
}

// pictured describes OpenAI's images.
func (b Block) pictured() File {
	url := b.imageURL()
	if mime, data, ok := dataURL(url); ok {
		return File{Mime: mime, Size: decoded(data)}
	}
	return File{Name: cmp.Or(url, b.FileID), Mime: "image", Size: -1}
}

// decoded returns how many bytes base64 encodes.
func decoded(data string) int64 {
	return int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "="))))
}
