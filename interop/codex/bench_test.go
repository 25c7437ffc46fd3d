package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop"
)

// generated returns a file of at least size bytes with the mix of lines in real ones (of 2,722: 573 token counts, 346
// messages, 316 calls and outputs each, 286 turn contexts, 255 + 199 events that repeat an item, 219 reasoning items),
// with texts that differ and outputs of some kilobytes.
func generated(size int) []byte {
	rnd := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	const source = "The quick brown fox jumps over the lazy dog. \n\tif err != nil {\n\t\treturn fmt.Errorf(\"open %s: <%w> & more\", name, err)\n\t}\n// naïve: it's “quoted” — sometimes\n"
	words := func(n int) string {
		at := rnd.IntN(len(source))
		text := strings.Repeat(source, n/len(source)+2)[at : at+n]
		return strings.ToValidUTF8(fmt.Sprint(rnd.Uint32(), text), "")
	}
	sealed := func(n int) string {
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		p := make([]byte, n)
		for i := range p {
			p[i] = letters[rnd.IntN(len(letters))]
		}
		return "gAAAAA" + string(p)
	}
	n := 0
	put := func(typ, format string, args ...any) {
		n++
		fmt.Fprintf(&b, `{"timestamp":"2026-01-%02dT%02d:%02d:%02d.%03dZ","type":%q,"payload":`, 1+n/86400%28, n/3600%24, n/60%60, n%60, n%1000, typ)
		fmt.Fprintf(&b, format+"}\n", args...)
	}
	b.WriteString(meta)
	for turn := 0; b.Len() < size; turn++ {
		q := words(300)
		put("turn_context", `{"turn_id":"t%d","cwd":"/home/u/project","approval_policy":"on-request","sandbox_policy":{"type":"workspace-write","writable_roots":[%q],"network_access":false},"model":"gpt-5-codex","effort":"medium","summary":"auto","user_instructions":%q}`, turn, "/tmp", words(800))
		put("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quoted(q))
		put("event_msg", `{"type":"user_message","message":%s,"images":[]}`, quoted(q))
		for k := range 4 {
			id := fmt.Sprintf("call_%d_%d", turn, k)
			thought := words(200)
			put("response_item", `{"type":"reasoning","id":"rs_%d","summary":[{"type":"summary_text","text":%s}],"content":null,"encrypted_content":%q}`, n, quoted(thought), sealed(1500))
			put("event_msg", `{"type":"agent_reasoning","text":%s}`, quoted(thought))
			if k%2 == 0 {
				said := words(400)
				put("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}`, quoted(said))
				put("event_msg", `{"type":"agent_message","message":%s}`, quoted(said))
			}
			args := `{"command":["bash","-lc",` + quoted(words(250)) + `],"workdir":"/home/u/project"}`
			put("response_item", `{"type":"function_call","name":"shell","arguments":%s,"call_id":%q}`, quoted(args), id)
			put("event_msg", `{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":123,"reasoning_output_tokens":64,"total_tokens":%d},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":900,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050},"model_context_window":272000},"rate_limits":{"primary":{"used_percent":1.0,"window_minutes":300,"resets_in_seconds":1000}}}`, n, n, n)
			put("response_item", `{"type":"function_call_output","call_id":%q,"output":%s}`, id, quoted(`{"output":`+quoted(words(2500))+`,"metadata":{"exit_code":0,"duration_seconds":0.1}}`))
		}
	}
	return b.Bytes()
}

// BenchmarkRead measures a rollout of 32 MiB, and the same one compressed, in bytes of the plain file a second.
func BenchmarkRead(b *testing.B) {
	plain := generated(32 << 20)
	for name, data := range map[string][]byte{"plain": plain, "zst": pack(b, plain)} {
		b.Run(name, func(b *testing.B) {
			src := interop.Bytes("s", data)
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(src, interop.Options{Now: now})
				n := 0
				for ; ; n++ {
					if _, err := r.Next(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
				if n < 10_000 || r.Close() != nil {
					b.Fatal(n)
				}
			}
		})
	}
}
