package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Headers of images: one of 1 pixel, one of 9,000 x 9,000.
const (
	onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
	wideOne  = "iVBORw0KGgoAAAANSUhEUgAAIygAACMoCAYAAABt1XK6"
)

// refused returns a session with values that an API refuses in every later request: half a pair in a text, a key and
// an id, images that are broken or too large, in a message, in a result, and in what a program wrote.
func refused(t *testing.T) session {
	line := func(id, parent, body string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",`+
			`"message":%s}`, id, parent, body)
	}
	image := func(mime, data string) string {
		return fmt.Sprintf(`{"type":"image","data":%q,"mimeType":%q}`, data, mime)
	}
	return read(t, interop.Pi, []byte(lf(
		strings.Replace(headers[interop.Pi][0], `{`, `{"note":"\ud83d",`, 1),
		line("a", "null", `{"role":"user","content":[{"type":"text","text":"q \ud83d \ud83d\ude42"},`+
			image("image/png", onePixel)+","+image("image/png", wideOne)+","+image("image/jpg", onePixel)+
			`],"timestamp":1}`),
		line("b", `"a"`, `{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":`+
			`"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"text\":\"\\ud83d\"}],`+
			`\"encrypted_content\":\"gAAA\"}"},{"type":"toolCall","id":"k\ud83d","name":"f",`+
			`"arguments":{"\udc00":"\ud83d"}}],"api":"a","provider":"p","model":"m","usage":`+usagePi+
			`,"stopReason":"toolUse","timestamp":1}`),
		line("c", `"b"`, `{"role":"toolResult","toolCallId":"k\ud83d","toolName":"f","content":[`+
			`{"type":"text","text":"r"},`+image("image/png", "!!")+`],"isError":false,"timestamp":1}`),
		`{"type":"custom_message","id":"d","parentId":"c","timestamp":"2026-01-01T00:00:00.000Z","customType":"x",`+
			`"content":[`+image("image/png", "")+`],"display":true}`,
	)))
}

// What a program's API would refuse is not in the files that are written for the program: it is named in words, and
// the losses count it.
func TestFilesHoldWhatAPIsTake(t *testing.T) {
	s := refused(t)
	for _, f := range All() {
		var out bytes.Buffer
		losses, err := Write(&out, f.Name, s.header, s.seq(), "d")
		if err != nil {
			t.Fatal(err)
		}
		images, wide := 3, false
		if f.Name == interop.ClaudeCode {
			images, wide = 4, true
		}
		if losses[lostText] != 6 || losses[lostImage] != images {
			t.Errorf("%s: losses %v", f.Name, losses)
		}
		text := out.String()
		for _, half := range []string{`\ud83d `, `\ud83d"`, `\ud83d\"`, `\udc00`} {
			if strings.Contains(text, half) {
				t.Errorf("%s: %s in\n%s", f.Name, half, text)
			}
		}
		whole := strings.Contains(text, `\ud83d\ude42`) || strings.Contains(text, "🙂")
		if !whole || strings.Contains(text, "[image left out: 9,000 x 9,000 pixels, at most 8,000]") != wide ||
			!strings.Contains(text, "[image left out: not base64]") || !strings.Contains(text, onePixel) {
			t.Errorf("%s:\n%s", f.Name, text)
		}
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: %s", f.Name, line)
			}
		}
		for i, d := range s.drafts {
			if !bytes.Equal(d.Raw, refused(t).drafts[i].Raw) {
				t.Errorf("%s: entry %d of the caller was changed: %s", f.Name, i, d.Raw)
			}
		}
	}
}

// The bytes of a file that is continued stay as they are, and its values are no losses of what was added.
func TestContinuedFilesKeepTheirValues(t *testing.T) {
	s := refused(t)
	original := s.rebuilt()
	added := `{"type":"message","id":"e","parentId":"d","timestamp":"2026-01-01T00:00:00.000Z","message":` +
		`{"role":"user","content":"\udc00","timestamp":1}}`
	all := transcript.Drafts(append(s.drafts, transcript.Draft{Raw: []byte(added)})...)
	var out bytes.Buffer
	losses, err := Continue(&out, interop.Pi, strings.NewReader(original), s.header, len(s.drafts), all, "e")
	if err != nil || losses[lostText] != 1 || losses[lostImage] != 0 {
		t.Errorf("%v, losses %v", err, losses)
	}
	if rest, ok := strings.CutPrefix(out.String(), original); !ok || !strings.Contains(rest, `"content":"\ufffd"`) {
		t.Errorf("%s", out.String())
	}
}
