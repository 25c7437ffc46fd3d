package operator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// An entry that would become gigabytes, for each of its messages has its place and its head, becomes a stub; so
// does one whose names are repeated beyond the limit of an entry.
func TestSizeEntryThatGrows(t *testing.T) {
	testutil.SkipLong(t)
	results := strings.Repeat(`{"type":"tool_result","id":"k"},`, 4_000)
	for name, line := range map[string]string{
		"a long id":   `{"type":"message","id":"` + strings.Repeat("i", 60<<10) + `","parent_id":"p","timestamp":1,"message":{"role":"tool","contents":[` + results + `0]}}`,
		"a long head": `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"x":"` + strings.Repeat("i", 60<<10) + `","contents":[` + strings.ReplaceAll(results, `},`, `},0,`) + `0]}}`,
		"many names":  `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"contents":[{"type":"tool_result"` + strings.Repeat(`,"id":"k"`, 1<<16) + `}]}}`,
		"many images": `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"contents":[{"type":"image","images":[` + strings.Repeat("1,", 3<<20) + `1]}]}}`,
	} {
		call := `{"type":"message","id":"c","parent_id":null,"timestamp":1,"message":{"role":"assistant","contents":[{"type":"tool_call","id":"k","name":"` + strings.Repeat("n", maxName) + `"}]}}`
		r := open([]byte(lf(head, call, line, `{"type":"label","id":"z","parent_id":null,"timestamp":1}`)))
		_, lines, err := readAll(r)
		if err != nil || len(lines) != 3 {
			t.Fatalf("%s: %d lines, %v", name, len(lines), err)
		}
		if l := lines[1]; l.ParentID != "p" || !bytes.Contains(l.Raw, []byte(`"stub":{`)) || len(l.Raw) > 2<<20 || len(r.Diagnostics()) == 0 {
			t.Errorf("%s: %.300s, %v", name, l.Raw, r.Diagnostics())
		}
	}
}

// If a block has a duplicate of a name that matters, the last one counts, as in encoding/json.
func TestNamesTwice(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"text","content":"a","type":"image","images":["/9j/x"]}`:                        `[{"type":"image","data":"/9j/x","mimeType":"image/jpeg"}]`,
		`{"type":"tool_result","id":"k","type":"text","content":"a"}`:                            `[{"type":"text","id":"k","text":"a"}]`,
		`{"type":"thinking","signature":"s","content":"hm","signature":""}`:                      `[{"type":"thinking","thinking":"hm"}]`,
		`{"type":"tool_call","kind":null,"args":{},"kind":"read"}`:                               `[{"type":"toolCall","kind":"read","arguments":{}}]`,
		`{"type":"image","images":["/9j/x"],"images":7}`:                                         `[{"type":"image","images":7}]`,
		`{"type":"image","images":7,"images":["/9j/x"]}`:                                         `[{"type":"image","data":"/9j/x","mimeType":"image/jpeg"}]`,
		`{"typ\u0065":"text","content":"a"}`:                                                     `[{"type":"text","text":"a"}]`,
		`{"type":"text","content":"a","é<":1}`:                                                   `[{"type":"text","text":"a","é\u003c":1}]`,
		`{"type" : "text" , "content" : "a" , "é<" : [ 1 ] }`:                                    `[{"type":"text","text":"a","é\u003c":[ 1 ]}]`,
		`{"type":"image","images":["data:image/\u0070ng;base64,A\/A","\/9j\/","a\"b"]}`:          `[{"type":"image","data":"A/A","mimeType":"image/png"},{"type":"image","data":"/9j/","mimeType":"image/jpeg"},{"type":"image_url","image_url":{"url":"a\"b"}}]`,
		`{"type":"tool_call","id":"k","name":"ls"},{"type":"tool_result","id":"k","id":"other"}`: `[{"type":"toolCall","id":"k","name":"ls"}]`,
	} {
		_, lines, err := readAll(open([]byte(lf(head, `{"type":"message","id":"a","message":{"contents":[0],"contents":[`+in+`],"role":"ai"}}`))))
		if err != nil || len(lines) == 0 {
			t.Fatalf("%s: %d lines, %v", in, len(lines), err)
		}
		if want = `"content":` + want; !bytes.Contains(lines[0].Raw, []byte(want)) {
			t.Errorf("%s became %s, want %s", in, lines[0].Raw, want)
		}
		if names := `"toolCallId":"k","toolName":"ls","toolCallId":"other","toolName":""`; len(lines) > 1 && !bytes.Contains(lines[1].Raw, []byte(names)) {
			t.Errorf("%s became %s, want %s", in, lines[1].Raw, names)
		}
	}
}
