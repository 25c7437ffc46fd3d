package codex

import (
	"fmt"
	"strings"
)

// maxUserText is the number of bytes of the user's text that Codex keeps at a compaction without a history: 20,000
// tokens of 4 bytes.
const maxUserText = 80_000

// userText is the text of a message of the user.
type userText struct {
	asked int // number of messages up to this one
	text  string
}

// userTexts holds the newest texts of the user, up to the bound.
type userTexts struct {
	list []userText
	size int // bytes
}

func (w *userTexts) add(asked int, text string) {
	if text == "" {
		return
	}
	text = clipMiddle(text, maxUserText)
	w.list = append(w.list, userText{asked, text})
	for w.size += len(text); w.size-len(w.list[0].text) >= maxUserText; w.list = w.list[1:] {
		w.size -= len(w.list[0].text)
	}
}

// back drops the texts after a number of messages.
func (w *userTexts) back(asked int) {
	for n := len(w.list); n > 0 && w.list[n-1].asked > asked; n-- {
		w.size -= len(w.list[n-1].text)
		w.list = w.list[:n-1]
	}
}

// newest returns the texts. The first one is cut if the total is too long.
func (w *userTexts) newest() (texts []string) {
	over := max(w.size-maxUserText, 0)
	for i, v := range w.list {
		if i == 0 && over > 0 {
			v.text = clipMiddle(v.text, len(v.text)-over)
		}
		texts = append(texts, v.text)
	}
	return texts
}

// clipMiddle shortens a long text in its middle, as Codex does.
func clipMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := fmt.Sprintf("…%d tokens truncated…", (len(text)-most+3)/4)
	half := max(most-len(cut), 0) / 2
	return strings.ToValidUTF8(text[:half], "") + cut + strings.ToValidUTF8(text[len(text)-half:], "")
}
