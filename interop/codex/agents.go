package codex

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// told ends a piece of what one agent says to another.
func (w *pieceMaker) told(p *rolloutPiece) {
	p.Name, p.Asks = "codex.agent_message", true
	w.end(p, actUnsaid)
}

// letterIn returns the letter that older versions put into a message as its text, as JSON; nil = it is none.
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

// letter makes what one agent says to another of the form in which it was sent. Of one that only the provider can
// read the head is in clear.
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

// hosted makes a block of a call that the provider answers itself: the item as it is, but for a picture, which is
// beside it. In an answer only Codex has one.
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

// imageType returns the type of a picture in base64, by its first bytes; "" = nothing that can be looked at.
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
