package backend_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/backend"
)

func TestValidKey(t *testing.T) {
	long := strings.Repeat("a", 255)
	for _, key := range []string{
		"a", "Z", "0", "-", "_", "a/b", "a.b", "a..b", "-rf", "a/-/_", "checkpoint_latest/x",
		"sessions/019f/transcript/00000000000000000000-0001-abcd.jsonl.zst", long, long + "/" + long,
		strings.Repeat("ab/", 299) + "abc",
	} {
		if err := backend.ValidKey(key); err != nil {
			t.Errorf("ValidKey(%q) = %v, want nil", key, err)
		}
	}
	for _, key := range []string{
		"", ".", "..", "/", "a/", "/a", "a//b", "./a", "../a", "a/..", "a/../b", "a/./b", ".a", "a.",
		"a/.b", "a./b", "a\\b", "a b", " ", "a\x00", "a\n", "a:b", "a%2fb", "a*", "a?", "~", "ä", "\xff",
		"a+b", "a@b", "a=b", "a,b", long + "a", "a/" + long + "a", strings.Repeat("ab/", 299) + "abcd",
	} {
		err := backend.ValidKey(key)
		var e *backend.Error
		if !errors.Is(err, backend.ErrKey) || !errors.As(err, &e) {
			t.Errorf("ValidKey(%q) = %v, want ErrKey in an *Error", key, err)
			continue
		}
		if e.Key != key || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("ValidKey(%q): key %q, %v; want the key and NotApplied", key, e.Key, e.Outcome)
		}
	}
}

// A hostile key must not be printed unquoted to a terminal or a log.
func TestKeyInErrorTextIsHarmless(t *testing.T) {
	text := backend.ValidKey("a\x1b[31m\n" + strings.Repeat("x", 1<<20)).Error()
	if strings.ContainsAny(text, "\x1b\n") || len(text) > 2000 {
		t.Errorf("error text of %d bytes with control bytes: %.80q", len(text), text)
	}
}

func TestValidKeyJoins(t *testing.T) {
	component := rapid.StringMatching(`[A-Za-z0-9_-]([A-Za-z0-9._-]{0,20}[A-Za-z0-9_-])?`)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(component, 1, 20).Draw(t, "parts")
		if err := backend.ValidKey(strings.Join(parts, "/")); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzValidKey(f *testing.F) {
	for _, s := range []string{"", "a/b", "..", "a\x00b", ".lock", "a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if backend.ValidKey(key) != nil {
			return
		}
		for part := range strings.SplitSeq(key, "/") {
			if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || len(part) > 255 {
				t.Fatalf("accepted %q", key)
			}
		}
		if strings.ContainsAny(key, "\\:*?\"<>|\x00 ") || len(key) > 900 {
			t.Fatalf("accepted %q", key)
		}
	})
}
