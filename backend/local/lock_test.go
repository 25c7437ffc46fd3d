package local

import "testing"

func TestLockName(t *testing.T) {
	for key, want := range map[string]string{
		"x":                                   ".lock",
		"checkpoint_latest/s1":                "checkpoint_latest/.lock",
		"a/b/c":                               "a/b/.lock",
		"sessions/s1/log":                     "sessions/s1/.lock",
		"sessions/s1/transcript/x.jsonl":      "sessions/s1/.lock",
		"sessions/s1":                         "sessions/.lock",
		"tenants/one/sessions/s1/blobs/x":     "tenants/one/sessions/s1/.lock",
		"tenants/one/checkpoint_latest/s1":    "tenants/one/checkpoint_latest/.lock",
		"sessions/tenant/sessions/s1/blobs/x": "sessions/tenant/sessions/s1/.lock",
		"sessions/sessions/x/y":               "sessions/sessions/x/.lock",
		"old-sessions/s1/x/y":                 "old-sessions/s1/x/.lock",
		"sessions/s1/sessions":                "sessions/s1/.lock",
	} {
		if got := lockName(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
