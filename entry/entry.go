// Package entry makes drafts: the entries that a session appends.
//
// A draft has exactly the JSON it was made from: numbers keep every digit, no escapes are added, and only insignificant
// white space is removed. No function here returns an error: a value that cannot become an entry (it does not marshal,
// the message is not a JSON object, its text is not valid UTF-8: a *codec.TextError) sets Draft.Err. Append then
// returns that error and appends nothing. So calls fit in one line:
//
//	ids, err := session.Append(ctx, entry.User(prompt), entry.Message(reply))
//
// Message takes any provider's message unchanged. User, Assistant and ToolResult make messages in the shape of pi's
// session format, for programs without a shape of their own. Line takes whole lines of other programs, byte for byte.
// The other functions make entries that are not messages.
//
// The package is pure; it does no I/O and reads no clock. An entry's time is Draft.Time, or the time of the append.
package entry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

var errNoObject = errors.New("not a JSON object")

// Message makes an entry of any provider's message: a struct, a map or a json.RawMessage. It must marshal to a JSON
// object, so a string, a slice or a []byte passed by mistake is an error and not a wrong message.
func Message(v any) transcript.Draft {
	raw, ok := v.(json.RawMessage)
	var err error
	if ok && isCompact(raw) {
		err = rawjson.CheckText[[]byte]("message", raw)
	} else {
		raw, err = object("message", v)
	}
	if err != nil {
		return failed("message", fmt.Errorf("%T: %w", v, err))
	}
	const field = `{"message":`
	body := append(append(make([]byte, 0, len(field)+len(raw)+1), field...), raw...)
	return transcript.Draft{Type: "message", Body: append(body, '}')}
}

// Custom makes an entry of the program's own, which the model never sees. kind names its type; data is any value that
// marshals, nil = none.
func Custom(kind string, data any) transcript.Draft {
	if kind == "" {
		return failed("custom", errors.New("no kind"))
	}
	return draft("custom", struct {
		Kind string `json:"customType"`
		Data any    `json:"data,omitempty"`
	}{kind, data})
}

// Move makes an entry that changes the session's working directory; "" = none.
func Move(cwd string) transcript.Draft {
	return Custom(transcript.MoveKind, map[string]string{"cwd": cwd})
}

// CustomMessage makes a message of the program's own that the model sees. content is a string, a []Block, or another
// form that the program's models accept; display reports whether people see it too.
func CustomMessage(kind string, content any, display bool) transcript.Draft {
	if kind == "" {
		return failed("custom_message", errors.New("no kind"))
	}
	return draft("custom_message", struct {
		Kind    string `json:"customType"`
		Content any    `json:"content"`
		Display bool   `json:"display"`
	}{kind, content, display})
}

// Compaction makes an entry that shortens the context: it then consists of the summary and the entries from firstKept
// (an ID on the same path) on. firstKept "" keeps no earlier entries. tokensBefore is the size of the context before,
// for information.
func Compaction(summary, firstKept string, tokensBefore int) transcript.Draft {
	return draft("compaction", struct {
		Summary   string `json:"summary"`
		FirstKept string `json:"firstKeptEntryId,omitempty"`
		Tokens    int    `json:"tokensBefore"`
	}{summary, firstKept, tokensBefore})
}

// Model makes an entry that changes the model in force.
func Model(provider, id string) transcript.Draft {
	return draft("model_change", struct {
		Provider string `json:"provider"`
		ID       string `json:"modelId"`
	}{provider, id})
}

// Thinking makes an entry that sets the thinking level: "off", "low", "high", or another value that the model supports.
func Thinking(level string) transcript.Draft {
	return draft("thinking_level_change", struct {
		Level string `json:"thinkingLevel"`
	}{level})
}

// Title makes an entry that names the session.
func Title(name string) transcript.Draft {
	return draft("session_info", struct {
		Name string `json:"name"`
	}{name})
}

// Line makes an entry of a whole line of a session file, kept byte for byte. It must be one JSON object with a type and
// an ID, and may end with its newline. The bytes are copied.
func Line(raw []byte) transcript.Draft {
	return transcript.Draft{Raw: append(make([]byte, 0, len(raw)), raw...)}
}

func draft(typ string, body any) transcript.Draft {
	raw, err := rawjson.Marshal("body", body)
	if err != nil {
		return failed(typ, err)
	}
	return transcript.Draft{Type: typ, Body: raw}
}

func failed(typ string, err error) transcript.Draft {
	return transcript.Draft{Type: typ, Err: fmt.Errorf("make a %s entry: %w", typ, err)}
}

// isCompact reports whether a value is an object that json.Marshal would not change.
func isCompact(raw []byte) bool {
	end, compact, err := rawjson.Scan(raw, 0, rawjson.MaxDepth)
	return err == nil && compact && end == len(raw) && raw[0] == '{'
}

// object marshals a value that must be an object.
func object(what string, v any) (json.RawMessage, error) {
	raw, err := rawjson.Marshal(what, v)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errNoObject
	}
	return raw, nil
}
