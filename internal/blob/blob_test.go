package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// bigBase64 returns base64 text of n bytes, and its decoded data.
func bigBase64(n int, seed byte) (text string, data []byte) {
	data = make([]byte, n)
	for i := range data {
		data[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return base64.StdEncoding.EncodeToString(data), data
}

func getter(blobs []Blob) func(string) ([]byte, bool) {
	m := map[string][]byte{}
	for _, b := range blobs {
		m[b.Sum] = b.Data
	}
	return func(sum string) ([]byte, bool) {
		data, ok := m[sum]
		return data, ok
	}
}

// roundTrip checks the properties that hold for every line, and returns the stored line.
func roundTrip(t interface{ Fatalf(string, ...any) }, line []byte) (stored []byte, blobs []Blob) {
	before := bytes.Clone(line)
	stored, blobs = Externalise(line)
	if !bytes.Equal(line, before) {
		t.Fatalf("Externalise changed its input")
	}
	back, missing := Internalise(stored, getter(blobs))
	if missing != nil || !bytes.Equal(back, line) {
		t.Fatalf("round trip (missing %v):\n line %.300q\n back %.300q", missing, line, back)
	}
	if json.Valid(line) && !json.Valid(stored) {
		t.Fatalf("the stored line is no JSON: %.300q", stored)
	}
	refs := map[string]int64{}
	for _, r := range Refs(stored) {
		refs[r.Sum] = r.Size
	}
	for _, b := range blobs {
		sum := sha256.Sum256(b.Data)
		if size, ok := refs[b.Sum]; !ok || size != int64(len(b.Data)) || b.Sum != hex.EncodeToString(sum[:]) {
			t.Fatalf("blob %s of %d bytes: reference %d %v", b.Sum, len(b.Data), size, ok)
		}
		delete(refs, b.Sum)
	}
	if len(refs) > 0 {
		t.Fatalf("references without blobs: %v", refs)
	}
	return stored, blobs
}

func TestExternalise(t *testing.T) {
	big, _ := bigBase64(30_000, 1)   // 40,000 characters
	other, _ := bigBase64(30_001, 2) // with padding
	atLimit, _ := bigBase64(24_576, 3)
	line := func(format string, args ...any) string {
		return fmt.Sprintf(`{"type":"message","id":"x","message":{"role":"user","content":[`+format+`]}}`, args...)
	}
	tests := []struct {
		name, line string
		blobs      int
	}{
		{"pi image", line(`{"type":"image","data":%q,"mimeType":"image/png"}`, big), 1},
		{"fields in another order", line(`{"mimeType":"image/png","data":%q}`, other), 1},
		{"anthropic", line(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, big), 1},
		{"gemini", line(`{"inlineData":{"data":%q,"mime_type":"image/png"}}`, big), 1},
		{"openai", line(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`, big), 1},
		{"bedrock", line(`{"image":{"format":"png","source":{"bytes":%q}}}`, big), 1},
		{"bedrock, format last", line(`{"image":{"source":{"bytes":%q},"format":"png"}}`, big), 1},
		{"bytes of no image", line(`{"source":{"bytes":%q}}`, big), 0},
		{"openai audio", line(`{"type":"input_audio","input_audio":{"data":%q,"format":"wav"}}`, big), 1},
		{"two, and one twice", line(`{"type":"image","data":%q},{"type":"image","data":%q},{"type":"image","data":%q}`, big, other, big), 2},
		{"inside an image and outside", line(`{"type":"image","nested":{"data":%q},"data":%q}`, big, other), 1},
		{"white space", line(` { "type" : "image" , "data" : %q } `, big), 1},
		{"32 KiB to the byte", line(`{"type":"image","data":%q}`, atLimit), 0},
		{"no image", line(`{"type":"text","data":%q}`, big), 0},
		{"another field", line(`{"type":"image","text":%q}`, big), 0},
		{"a key", line(`{"type":"image",%q:"data"}`, big), 0},
		{"an array", line(`{"type":"image","data":[%q]}`, big), 0},
		{"not base64", line(`{"type":"image","data":%q}`, strings.Repeat("text ", 10_000)), 0},
		{"unpadded", line(`{"type":"image","data":%q}`, strings.TrimRight(other, "=")), 0},
		{"loose bits", line(`{"type":"image","data":%q}`, looseBits(other)), 0},
		{"line breaks in it", line(`{"type":"image","data":"%s\n%s"}`, big, big), 0},
		{"escapes in it", line(`{"type":"image","data":"%s\/%s"}`, big, big), 0},
		{"looks like one of ours", line(`{"type":"text","text":"coppice-blob:sha256:%s:5 coppice-blob:=: coppice-blob:"}`, strings.Repeat("a", 64)), 0},
		{"both", line(`{"type":"image","data":%q},"coppice-blob:sha256:%s:5"`, big, strings.Repeat("a", 64)), 1},
		{"torn", line(`{"type":"image","data":%q}`, big)[:40_050], 0},
		{"no JSON", strings.Repeat(`]}"data":`, 10_000), 0},
		{"too deep", strings.Repeat(`{"a":`, 600) + fmt.Sprintf(`{"type":"image","data":%q}`, big) + strings.Repeat("}", 600), 0},
		{"empty", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored, blobs := roundTrip(t, []byte(tt.line))
			if len(blobs) != tt.blobs {
				t.Errorf("%d blobs, want %d", len(blobs), tt.blobs)
			}
			if tt.blobs > 0 && len(stored) > len(tt.line)-tt.blobs*39_000 {
				t.Errorf("stored line of %d bytes", len(stored))
			}
		})
	}
}

// looseBits changes the bits that padded base64 does not use.
func looseBits(b64 string) string {
	i := strings.IndexByte(b64, '=') - 1
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return b64[:i] + string(alphabet[strings.IndexByte(alphabet, b64[i])|1]) + b64[i+1:]
}

// Every line of real session files is stored and restored to the byte.
func TestRealFiles(t *testing.T) {
	for _, name := range testutil.RealFiles() {
		t.Run(name, func(t *testing.T) {
			for line := range bytes.Lines(testutil.SharedFile(t, name)) {
				roundTrip(t, bytes.TrimRight(line, "\n"))
			}
		})
	}
}

func TestInternaliseMissing(t *testing.T) {
	big, _ := bigBase64(30_000, 1)
	line := []byte(`{"type":"image","data":"` + big + `","note":"coppice-blob:"}`)
	stored, blobs := Externalise(line)
	for name, get := range map[string]func(string) ([]byte, bool){
		"absent":            func(string) ([]byte, bool) { return nil, false },
		"of another length": func(string) ([]byte, bool) { return []byte("x"), true },
	} {
		got, missing := Internalise(stored, get)
		want := `{"type":"image","data":"coppice-blob:sha256:` + blobs[0].Sum + `:30000","note":"coppice-blob:"}`
		if string(got) != want || len(missing) != 1 || missing[0] != blobs[0].Sum {
			t.Errorf("%s: got %s, missing %v", name, got, missing)
		}
	}
	odd := []byte(`coppice-blob:sha256:00:5 coppice-blob:sha256:` + strings.Repeat("A", 64) + `:5 coppice-blob:sha256:` + strings.Repeat("a", 64) + `:99999999999999999999 coppice-blob:sha256:` + strings.Repeat("a", 64))
	if got, missing := Internalise(odd, getter(nil)); !bytes.Equal(got, odd) || missing != nil || Refs(odd) != nil {
		t.Errorf("what we did not write: got %s, missing %v", got, missing)
	}
}

// The mapping is one to one for every line.
func TestBlobsBijection(t *testing.T) {
	big, _ := bigBase64(30_000, 1)
	other, _ := bigBase64(27_001, 9)
	sum := strings.Repeat("0f", 32)
	pieces := []string{
		"coppice-blob:", "coppice-blob:=:", "=:", "coppice-", "blob:", "sha256:", sum, ":30000", "coppice-blob:sha256:" + sum + ":7",
		`{"type":"image","data":"`, `"}`, `{"data":"`, `","type":"image"}`, big, other, looseBits(other), `,`, `[`, `]`, `"`, `\"`, "data:image/png;base64,", "é", "x",
	}
	rapid.Check(t, func(t *rapid.T) {
		// Chosen by number: a failure prints numbers and not megabytes.
		var line strings.Builder
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(pieces)-1), 0, 14).Draw(t, "pieces") {
			line.WriteString(pieces[i])
		}
		roundTrip(t, []byte(line.String()))
		if rapid.Bool().Draw(t, "valid") {
			p, err := json.Marshal(map[string]any{"type": "image", "data": big, "text": line.String()})
			if err != nil {
				t.Fatal(err)
			}
			if _, blobs := roundTrip(t, p); len(blobs) < 1 {
				t.Fatalf("no blob")
			}
		}
	})
}

func FuzzBlobs(f *testing.F) {
	big, _ := bigBase64(24_600, 1)
	f.Add([]byte(`{"type":"image","data":"` + big + `"}`))
	f.Add([]byte(`coppice-blob:=:coppice-blob:sha256:` + strings.Repeat("a", 64) + `:1`))
	f.Fuzz(func(t *testing.T, line []byte) {
		roundTrip(t, line)
		Internalise(line, getter(nil))
		Refs(line)
	})
}
