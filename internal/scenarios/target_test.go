package scenarios_test

import (
	"flag"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
)

func TestTargetText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	for text, want := range map[string]coppice.Target{
		"head": {}, "seq:12": {Seq: 12}, "commit:ab": {Commit: "ab"}, "entry:e-1": {Entry: "e-1"},
		"snap:0001-x": {Snapshot: "0001-x"}, "tag:green": {Tag: "green"}, "tag:a:b": {Tag: "a:b"},
		"2026-01-02T03:04:05.006Z": {Time: at},
	} {
		var got coppice.Target
		if err := got.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		back, err := want.MarshalText()
		if err != nil || string(back) != text {
			t.Errorf("%s: came back as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"0192f3a0", "seq:0", "green"} {
		var got coppice.Target
		ok(t, got.UnmarshalText([]byte(text)))
		same(t, "text", got, text)
		if got == (coppice.Target{}) {
			t.Errorf("%s reads as the head", text)
		}
	}
	for _, text := range []string{"", "seq:", "seq:x", "seq:-1", "tag:", "what:ever", "a b", "a\n", "2026-13-01T00:00:00Z"} {
		var got coppice.Target
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
	if _, err := (coppice.Target{Seq: 1, Entry: "x"}).MarshalText(); err == nil {
		t.Error("a target that says two things has a text")
	}
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	var target coppice.Target
	fs.TextVar(&target, "at", coppice.Target{}, "")
	ok(t, fs.Parse([]string{"-at", "seq:7"}))
	same(t, "flag", target.Seq, 7)
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"head", "seq:1", "tag:x", "2026-01-02T03:04:05Z", "abc", "seq:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var a, b coppice.Target
		if a.UnmarshalText([]byte(text)) != nil {
			return
		}
		out, err := a.MarshalText()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := b.UnmarshalText(out); err != nil || b.String() != a.String() {
			t.Fatalf("%q: %q came back as %q, %v", text, out, b, err)
		}
	})
}

// A target whose text could not be parsed, such as an id with a space, has none.
func TestTargetWithoutText(t *testing.T) {
	for _, id := range []string{" ", "\x00", "a b", "x\ny"} {
		if text, err := (coppice.Target{Entry: id}).MarshalText(); err == nil {
			t.Errorf("entry %q: %q", id, text)
		}
	}
	text, err := coppice.Target{Entry: "é"}.MarshalText()
	if err != nil || string(text) != "entry:é" {
		t.Errorf("%q %v", text, err)
	}
}
