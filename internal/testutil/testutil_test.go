package testutil_test

import (
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
)

func TestClock(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": at, "8760h": at.AddDate(1, 0, 0), "-1m": at.Add(-time.Minute)} {
		t.Setenv(testutil.ShiftVariable, text)
		now := testutil.Clock(at, time.Second)
		if first, second := now(), now(); !first.Equal(want.Add(time.Second)) || !second.Equal(want.Add(2*time.Second)) {
			t.Errorf("moved by %q: %v, %v", text, first, second)
		}
		if got := testutil.Shifted(at); !got.Equal(want) {
			t.Errorf("moved by %q: %v", text, got)
		}
	}
}
