package local

import (
	"fmt"
	"strings"
	"testing"
)

func TestLocksOfSessions(t *testing.T) {
	for key, want := range map[string]string{
		"sessions/s1/log":                     "sessions/s1/.lock",
		"sessions/s1/transcript/x.jsonl":      "sessions/s1/.lock",
		"tenants/one/sessions/s1/blobs/x":     "tenants/one/sessions/s1/.lock",
		"sessions/tenant/sessions/s1/blobs/x": "sessions/tenant/sessions/s1/.lock",
		"sessions/sessions/x/y":               "sessions/sessions/x/.lock",
		"sessions/s1/sessions":                "sessions/s1/.lock",
	} {
		if got, shared := lockNames(key); got != want || shared != "" {
			t.Errorf("%s: %s and %q, want %s alone", key, got, shared, want)
		}
	}
}

// TestLocksOfFolders: the names are part of the format, so that releases exclude each other. They are the same files
// when the store is opened at a folder above.
func TestLocksOfFolders(t *testing.T) {
	for key, want := range map[string]string{
		"x":                    ".lock-03",
		"checkpoint_latest/s0": "checkpoint_latest/.lock-26",
		"checkpoint_latest/s1": "checkpoint_latest/.lock-30",
		"checkpoint_latest/s2": "checkpoint_latest/.lock-0a",
		"checkpoint_latest/s3": "checkpoint_latest/.lock-1c",
		"a/b/c":                "a/b/.lock-2f",
		"b/b/b":                "b/b/.lock-39",
		"old-sessions/s1/x/y":  "old-sessions/s1/x/.lock-15",
		"sessions/s1":          "sessions/.lock-30",
		"checkpoint_latest/0192f3a0-0000-7000-8000-000000000001": "checkpoint_latest/.lock-2a",
	} {
		folder := want[:strings.LastIndexByte(want, '-')]
		for _, above := range []string{"", "tenants/one/"} {
			got, shared := lockNames(above + key)
			if got != above+want || shared != above+folder {
				t.Errorf("%s: %s and %s, want %s and %s", above+key, got, shared, above+want, above+folder)
			}
		}
	}
	counts := map[string]int{}
	for i := range 64_000 {
		own, _ := lockNames(fmt.Sprintf("checkpoint_latest/0192f3a0-%04x-7000-8000-%012x", i%50, i))
		counts[own]++
	}
	for name, n := range counts {
		if n < 500 || n > 2000 {
			t.Errorf("%s is the lock of %d of 64,000 sessions", name, n)
		}
	}
	if len(counts) != stripes {
		t.Errorf("%d locks are in use, want %d", len(counts), stripes)
	}
}
