package formats

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// chains are the lines of a conversation of eight questions in each format: the header, and each question after the
// one before it.
var chains = map[interop.Format]struct{ header, line string }{
	interop.Pi: {
		`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`,
		`{"type":"message","id":"m%[1]d","parentId":%[2]s,"timestamp":"2026-01-01T00:00:00.000Z",` +
			`"message":{"role":"user","content":"q%[1]d"}}`,
	},
	interop.Omp: {
		`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","titleSource":"user"}`,
		`{"type":"message","id":"m%[1]d","parentId":%[2]s,"timestamp":"2026-01-01T00:00:00.000Z",` +
			`"message":{"role":"user","content":"q%[1]d"}}`,
	},
	interop.Operator: {
		`{"type":"session_header","version":1,"id":"s1","timestamp":1767225600.0,"cwd":"/w"}`,
		`{"type":"message","id":"m%[1]d","parent_id":%[2]s,"timestamp":1767225600.0,"message":{"role":"user",` +
			`"id":"u","timestamp":1767225600.0,"contents":[{"type":"text","content":"q%[1]d"}]}}`,
	},
	interop.ClaudeCode: {
		"",
		`{"parentUuid":%[2]s,"isSidechain":false,"cwd":"/w","sessionId":"s1","version":"2.1.0","type":"user",` +
			`"message":{"role":"user","content":"q%[1]d"},"uuid":"m%[1]d","timestamp":"2026-01-01T00:00:00.000Z"}`,
	},
}

// harm are ways in which a line is damaged.
var harm = map[string]func(line string) string{
	"in the middle": func(line string) string { return strings.Replace(line, `"q`, `***`, 1) },
	"at its start":  func(line string) string { return "x" + line[1:] },
	"at its end":    func(line string) string { return line[:len(line)-5] },
	"all of it":     func(string) string { return "REDACTED" },
}

// TestDamagedLine: if any one line or any two adjacent lines are damaged, all others stay in the conversation, in every
// format whose entries name their parents.
func TestDamagedLine(t *testing.T) {
	const n = 8
	for f, c := range chains {
		lines, up := []string{c.header}, "null"
		for i := range n {
			lines = append(lines, fmt.Sprintf(c.line, i, up))
			up = fmt.Sprintf(`"m%d"`, i)
		}
		for name, damage := range harm {
			for at := range n - 1 {
				for count := 1; count <= 2 && at+count < n; count++ {
					file, want := slices.Clone(lines), []string(nil)
					for i := range n {
						if i >= at && i < at+count {
							file[i+1] = damage(file[i+1])
						} else {
							want = append(want, fmt.Sprintf("q%d", i))
						}
					}
					s := read(t, f, []byte(strings.TrimPrefix(lf(file...), "\n")))
					got := said(s.context(transcript.Coppice))
					if !slices.Equal(got, want) || s.reader.BadLines() != count {
						t.Errorf("%s, %d from %d damaged %s: %v", f, count, at, name, got)
					}
				}
			}
		}
	}
}
