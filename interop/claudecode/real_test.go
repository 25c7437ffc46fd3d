package claudecode

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
)

// TestRealFiles: in real files every line with content is on the path to the head or on a branch, no result is without
// its call, and a written copy has the same content.
func TestRealFiles(t *testing.T) {
	for _, name := range testutil.RealFiles() {
		if !strings.Contains(name, "claude-code") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data := string(testutil.SharedFile(t, name))
			s, r := read(t, data)
			all := append([]session{s}, children(t, r)...)
			var kept strings.Builder
			for _, c := range all {
				for _, e := range c.Path(t, "") {
					kept.Write(e.Raw)
				}
			}
			lines, reached := 0, 0
			for line := range strings.Lines(data) {
				l := []byte(line)
				content := rawjson.Field(rawjson.Field(l, "message"), "content")
				if len(content) == 0 || rawjson.Field(l, "uuid") == nil {
					continue
				}
				lines++
				word := content
				for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
					if rawjson.IsString(m.Val) {
						word = m.Val
					}
					for _, name := range []string{"id", "tool_use_id", "thinking", "text"} {
						if v := rawjson.Field(m.Val, name); v != nil {
							word = v
							break
						}
					}
				}
				if strings.Contains(kept.String(), string(word)) {
					reached++
				}
			}
			if lines == 0 || reached != lines {
				t.Errorf("%d of %d lines are reached from the end", reached, lines)
			}
			if k := kinds(r.Diagnostics()); strings.Contains(k, "orphan-result") {
				t.Error(r.Diagnostics())
			}
			var out strings.Builder
			losses, err := Write(&out, s.Header, drafts(&s))
			delete(losses, "lines of sidechains: they are in sessions of their own") // these files have some
			if err != nil || len(losses) > 0 {
				t.Errorf("%v %v", losses, err)
			}
			again, _ := read(t, out.String())
			if a, b := again.Talk(t, ""), s.Talk(t, ""); a != b {
				t.Errorf("written and read again\n got %.500s\nwant %.500s", a, b)
			}
		})
	}
}
