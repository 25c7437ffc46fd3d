package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// words returns text of so many words that no two places share, as prose and tool output have it.
func words(seed, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%x ", [...]string{"the", "func", "return", "commit", "if err != nil", "/usr/lib/", "session"}[(seed+i*i)%7], (seed*2654435761+i*40503)%65536)
	}
	return b.String()
}

// benchFile is a session of a coding agent of some size: prose, calls, results of up to some KB.
func benchFile(format interop.Format, size int) []byte {
	var b bytes.Buffer
	parent, stamp := "null", `"2026-01-01T00:00:00.000Z"`
	if format == interop.Pi {
		fmt.Fprintf(&b, `{"type":"session","version":3,"id":"bench","timestamp":%s,"cwd":"/w"}`+"\n", stamp)
	}
	for i := 0; b.Len() < size; i++ {
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
		role, content := "user", fmt.Sprintf("%q", words(i, 60))
		switch {
		case i%7 == 0:
		case i%2 == 1:
			role = "assistant"
		default:
			content = fmt.Sprintf("%q", words(i, 30+i%5*100))
		}
		if format == interop.Pi {
			message := fmt.Sprintf(`{"role":"user","content":%s,"timestamp":1}`, content)
			if role == "assistant" {
				message = fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"toolCall","id":"t%d","name":"bash","arguments":{"command":"ls"}}],"provider":"p","model":"m","stopReason":"toolUse","timestamp":1}`, content, i)
			} else if i%7 != 0 {
				message = fmt.Sprintf(`{"role":"toolResult","toolCallId":"t%d","toolName":"bash","content":[{"type":"text","text":%s}],"isError":false,"timestamp":1}`, i-1, content)
			}
			fmt.Fprintf(&b, `{"type":"message","id":%q,"parentId":%s,"timestamp":%s,"message":%s}`+"\n", id, parent, stamp, message)
		} else {
			message := fmt.Sprintf(`{"role":"user","content":%s}`, content)
			if role == "assistant" {
				message = fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`, i, content, i)
			} else if i%7 != 0 {
				message = fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}`, i-1, content)
			}
			fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"bench","version":"2.0.1","type":%q,"message":%s,"uuid":%q,"timestamp":%s}`+"\n", parent, role, message, id, stamp)
		}
		parent = fmt.Sprintf("%q", id)
	}
	return b.Bytes()
}

// BenchmarkImport measures bytes of the file a second: its reader alone, which is what a peer does when it opens the
// file, and the whole import, which also compresses and stores everything. floor is what compressing the file once
// costs on one core: no store that compresses is faster by more than its cores.
func BenchmarkImport(b *testing.B) {
	const size = 32 << 20
	for _, format := range []interop.Format{interop.Pi, interop.ClaudeCode} {
		raw := benchFile(format, size)
		b.Run(string(format)+"/read", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				r, err := formats.Open(interop.Bytes("f", raw), format, interop.Options{Now: time.Now()})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Next()
				}
				if !errors.Is(err, io.EOF) || r.Close() != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(format)+"/floor", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				for at := 0; at < len(raw); at += 1 << 20 {
					codec.Compress(nil, raw[at:min(len(raw), at+1<<20)], codec.Default)
				}
			}
		})
		for name, open := range map[string]func() (backend.Backend, error){
			"memory": func() (backend.Backend, error) { return memory.New(), nil },
			"local":  func() (backend.Backend, error) { return local.Open(b.TempDir(), nil) },
		} {
			b.Run(string(format)+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				for b.Loop() {
					be, err := open()
					if err != nil {
						b.Fatal(err)
					}
					st, err := coppice.New(be, nil)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := Import(b.Context(), st, interop.Bytes("f", raw), options()); err != nil {
						b.Fatal(err)
					}
					if err := st.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkImportGrowth measures the import of a file of 50 MB to which a call and its result were added, from the
// opening of the store to its closing; in parts, what is added is what a program writes.
func BenchmarkImportGrowth(b *testing.B) {
	const size = 50 << 20
	for _, format := range endFormats {
		b.Run(string(format), func(b *testing.B) {
			f := newGrownFile(format)
			for f.Len() < size {
				if f.turn(5); f.Len()%(3<<19) < 16<<10 {
					f.compact()
				}
			}
			dir, path := b.TempDir(), filepath.Join(b.TempDir(), f.name)
			bring := func() {
				be, err := local.Open(dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				st, err := coppice.New(be, nil)
				if err != nil {
					b.Fatal(err)
				}
				var batch Batch
				if _, err = batch.Import(b.Context(), st, Find(b.Context(), []string{path})[0], growing()); err != nil {
					b.Fatal(err)
				}
				if err := st.Close(); err != nil {
					b.Fatal(err)
				}
			}
			write := func() {
				if err := os.WriteFile(path, f.Bytes(), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			write()
			bring()
			for b.Loop() {
				b.StopTimer()
				f.step()
				write()
				b.StartTimer()
				bring()
			}
		})
	}
}
