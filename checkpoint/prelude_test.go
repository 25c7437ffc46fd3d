package checkpoint

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

func testPrelude() Prelude {
	return Prelude{
		ID: testID(3), Time: testTime, Format: PreludeFormat, Session: "chat-\u00e9", First: 13, FirstSeq: 7, Epoch: 2, Key: testKey,
		PrevName: "00000000000000000000-1-0000000000000000", PrevBytes: 900, PrevSelf: testPrev,
	}
}

func TestPreludeGolden(t *testing.T) {
	first := testPrelude()
	first.PrevName, first.PrevBytes, first.PrevSelf = "", 0, 0
	folded := testPrelude() // the reference to the previous segment is in an index object
	folded.PrevName, folded.PrevBytes = "", 0
	for name, p := range map[string]Prelude{"prelude-first.jsonl": first, "prelude-next.jsonl": testPrelude(), "prelude-folded.jsonl": folded} {
		line, err := p.Line()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, append(bytes.Clone(line), '\n'))
		if got, ok := ParsePrelude(line); !ok || got != p {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", name, got, ok, p)
		}
		if l, err := transcript.ParseLine(line); err != nil || l.Type != "custom" || l.ID != p.ID || l.ParentID != "" {
			t.Errorf("%s: as an entry: %+v, %v", name, l, err)
		}
		for i := range line {
			for bit := range 8 {
				line[i] ^= 1 << bit
				if _, ok := ParsePrelude(line); ok {
					t.Fatalf("%s: bit %d of byte %d passes", name, bit, i)
				}
				line[i] ^= 1 << bit
			}
			if _, ok := ParsePrelude(line[:i]); ok {
				t.Fatalf("%s: first %d bytes pass", name, i)
			}
		}
	}
}

func TestPreludeRefuses(t *testing.T) {
	for name, edit := range map[string]func(*Prelude){
		"id": func(p *Prelude) { p.ID = "" }, "session": func(p *Prelude) { p.Session = "" },
		"length": func(p *Prelude) { p.PrevBytes = -1 }, "year": func(p *Prelude) { p.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		p := testPrelude()
		edit(&p)
		if _, err := p.Line(); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// repair sets the checksum of a changed prelude.
func repair(body string) []byte {
	v, out := codec.CRC([]byte(body)), []byte(body+preludeCRC)
	for shift := 28; shift >= 0; shift -= 4 {
		out = append(out, "0123456789abcdef"[v>>shift&15])
	}
	return append(out, `"}}`...)
}

func TestPreludeStrictShape(t *testing.T) {
	line, err := testPrelude().Line()
	if err != nil {
		t.Fatal(err)
	}
	body, _, _ := strings.Cut(string(line), preludeCRC)
	if !bytes.Equal(repair(body), line) {
		t.Fatal("repair does not give the line back")
	}
	for name, e := range map[string][2]string{
		"space": {`"first":13`, `"first": 13`}, "format 0": {`"format":1`, `"format":0`}, "unknown": {`,"key"`, `,"x":1,"key"`},
		"short key": {`"key":"0`, `"key":"`}, "negative": {`"bytes":900`, `"bytes":-900`}, "parent": {`"parentId":null`, `"parentId":"x"`},
		"empty": {`{"name":"00000000000000000000-1-0000000000000000","bytes":900,"self":"deadbeef"}`, `{"name":"","bytes":0,"self":"00000000"}`},
	} {
		if p, ok := ParsePrelude(repair(strings.Replace(body, e[0], e[1], 1))); ok || p.Format > PreludeFormat {
			t.Errorf("%s: %+v, %v", name, p, ok)
		}
	}
	if p, ok := ParsePrelude(repair(strings.Replace(body, `"format":1`, `"format":2,"more":[]`, 1))); ok || p.Format != 2 {
		t.Errorf("a later format reads as %+v, %v", p, ok)
	}
}
