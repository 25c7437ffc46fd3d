package checkpoint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// benchDocument is a state of about 4 KiB, as large as one that always goes whole.
func benchDocument(b *testing.B) []byte {
	doc, err := Document{
		State: json.RawMessage(`{"list":[` + strings.Repeat(`{"title":"a step of the plan","done":false,"n":12345},`, 72) + `null]}`), Branch: "main",
	}.Encode()
	if err != nil {
		b.Fatal(err)
	}
	return doc
}

// The commit path: what stands between a turn and its fdatasync of about 120 microseconds.
func BenchmarkCommitLine(b *testing.B) {
	small, large := plainRecord(), plainRecord()
	large.Doc = benchDocument(b)
	patched := fullRecord()
	patched.Base = nil
	for name, r := range map[string]Record{"small": small, "4KiB": large, "patch": patched} {
		b.Run("append/"+name, func(b *testing.B) {
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.AppendLine(buf, testKey, testPrev, testSince); err != nil {
					b.Fatal(err)
				}
			}
		})
		line, _, err := r.AppendLine(nil, testKey, testPrev, testSince)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("parse/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ours, err := ParseRecord(line, testKey); !ours || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parse/not ours", func(b *testing.B) {
		line := []byte(`{"type":"custom","id":"0193f2a0-0000-7000-8000-000000000009","parentId":null,"timestamp":"2026-11-20T10:30:00.123Z","customType":"plan","data":{}}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, ours, _ := ParseRecord(line, testKey); ours {
				b.Fatal("ours")
			}
		}
	})
}

func BenchmarkDocumentEncode(b *testing.B) {
	d, err := DecodeDocument(benchDocument(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

// benchObject has a pool of about 200 KB of chat.
func benchObject() *Object {
	o := testObject()
	o.Pool, o.Window.Ords, o.Tail = map[uint64][]byte{}, nil, TailState{First: 1000}
	words := strings.Fields("the function returns an error when the file is not found so we check the path first and then read it again")
	for i := range uint64(200) {
		var text strings.Builder
		for j := range 170 {
			fmt.Fprintf(&text, "%s ", words[(int(i)*31+j*j*7+j)%len(words)])
			if j%9 == 0 {
				fmt.Fprintf(&text, "%x ", codec.CRC([]byte{byte(i), byte(j)}))
			}
		}
		o.Pool[i] = fmt.Appendf(nil, `{"type":"message","id":"%s","parentId":"%s","message":{"role":"user","content":%q}}`, testID(int(i)), testID(int(i)-1), text.String())
		o.Window.Ords = append(o.Window.Ords, i)
	}
	return o
}

// Encoding a pool of 200 KB is to be little more than compressing it.
func BenchmarkObject(b *testing.B) {
	o := benchObject()
	p := mustEncode(b, o)
	_, body, err := codec.DecodeContainer(p, codec.KindCheckpoint, MaxBody)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := o.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("zstd alone", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			codec.Compress(nil, body, codec.Default)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeObject(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
