package codex

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// told completes the piece of a message from one agent to another.
func (w *pieceMaker) told(p *rolloutPiece) {
	p.Name, p.Asks = "codex.agent_message", true
	w.end(p, actUnsaid)
}

// letterIn returns the agent message that older versions stored as the text of an ordinary message, as JSON. It returns
// nil if the content is something else.
func letterIn(content []byte) []byte {
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	m := rawjson.Walk(content)
	if !m.Next() || !bytes.HasPrefix(rawjson.Field(m.Val, "text"), []byte(`"{\"author\":`)) {
		return nil
	}
	inner := rawjson.AppendText(nil, rawjson.Field(m.Val, "text"))
	if end, err := rawjson.ValueEnd(inner, 0, rawjson.MaxDepth/2); m.Next() || err != nil || end != len(inner) {
		return nil
	}
	for _, name := range []string{"author", "recipient", "content"} {
		if !rawjson.IsString(rawjson.Field(inner, name)) {
			return nil
		}
	}
	if t := rawjson.Field(inner, "trigger_turn"); string(t) != "true" && string(t) != "false" {
		return nil
	}
	return inner
}

// letter completes the piece of an agent message, in the form in which it was sent. If the content is encrypted, the
// unencrypted header is kept.
func (w *pieceMaker) letter(p *rolloutPiece, letter []byte) {
	text, sealed := rawjson.Field(letter, "content"), rawjson.Field(letter, "encrypted_content")
	switch {
	case rawjson.IsString(sealed):
		kind := "MESSAGE"
		if rawjson.IsTrue(rawjson.Field(letter, "trigger_turn")) {
			kind = "NEW_TASK"
		}
		head := "Message Type: " + kind + "\nTask name: " + rawjson.Text(rawjson.Field(letter, "recipient")) +
			"\nSender: " + rawjson.Text(rawjson.Field(letter, "author")) + "\nPayload:\n"
		w.room = append(rawjson.AppendString(append(w.room, `[{"type":"text","text":`...), head),
			`},{"type":"encrypted_content","encrypted_content":`...)
		w.room = append(append(w.room, sealed...), "}]"...)
	case rawjson.IsString(text):
		w.room = append(append(append(w.room, `[{"type":"text","text":`...), text...), "}]"...)
	default:
		return
	}
	w.told(p)
}

// hosted makes a block of a call that the provider answers itself. The block is the item unchanged, except for an
// image: it becomes a block of its own. Only Codex stores images in answers.
func (w *pieceMaker) hosted(p *rolloutPiece) {
	picture := rawjson.Field(p.Payload, "result")
	mime := imageType(picture)
	if p.Kind != "image_generation_call" || mime == "" {
		w.room = append(w.room, p.Payload...)
		w.end(p, actAnswer)
		return
	}
	w.room = append(w.room, rawjson.WithField(p.Payload, "result", nil)...)
	w.end(p, actAnswer)
	from := len(w.room)
	w.room = append(append(w.room, `[{"type":"image","data":`...), picture...)
	w.room = append(append(append(w.room, `,"mimeType":"`...), mime...), `"}]`...)
	p.Image = w.room[from:len(w.room):len(w.room)]
}

// imageType returns the MIME type of a base64 image, determined by its first bytes; "" if it is not a known image.
func imageType(data []byte) string {
	if len(data) <= len(`""`) || data[0] != '"' || bytes.IndexByte(data, '\\') >= 0 ||
		bytes.HasPrefix(data, []byte(`"data:`)) {
		return ""
	}
	switch data = data[1:]; {
	case bytes.HasPrefix(data, []byte("/9j/")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("UklGR")):
		return "image/webp"
	case bytes.HasPrefix(data, []byte("R0lGOD")):
		return "image/gif"
	}
	return "image/png"
}
