package manager_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
)

var pinsStart = testutil.Shifted(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))

func file(t *testing.T) *manager.Pins {
	t.Helper()
	return &manager.Pins{Path: filepath.Join(t.TempDir(), "below", "pins.json"), Now: func() time.Time { return pinsStart }}
}

func add(t *testing.T, f *manager.Pins, store string, sessions ...string) {
	t.Helper()
	for _, s := range sessions {
		if err := f.Add(store, s); err != nil {
			t.Fatal(err)
		}
	}
}

func list(f *manager.Pins, store string) string {
	var ids []string
	for _, p := range f.List(store) {
		ids = append(ids, p.Session)
	}
	return strings.Join(ids, " ")
}

func TestPinsAreOfAStoreAndNewestFirst(t *testing.T) {
	f := file(t)
	if got := list(f, "/a"); got != "" {
		t.Errorf("before the first: %s", got)
	}
	add(t, f, "/a", "s1", "s2", "s3")
	add(t, f, "/b", "s1")
	add(t, f, "/a", "s1") // again
	if got := list(f, "/a") + "|" + list(f, "/b") + "|" + list(f, "/c"); got != "s1 s3 s2|s1|" {
		t.Error(got)
	}
	if p := f.List("/b")[0]; p.Store != "/b" || !p.Time.Equal(pinsStart) {
		t.Errorf("%+v", p)
	}
	for _, want := range []bool{true, false} {
		if was, err := f.Remove("/a", "s3"); was != want || err != nil {
			t.Errorf("removed %v, %v", was, err)
		}
	}
	if got := list(f, "/a") + "|" + list(f, "/b"); got != "s1 s2|s1" {
		t.Error(got)
	}
	if err := f.Add("/a", ""); err == nil {
		t.Error("no id was pinned")
	}
}

func TestADamagedFileIsAnEmptyOne(t *testing.T) {
	f := file(t)
	add(t, f, "/a", "s1")
	for _, damage := range []string{"", `{"pins":[{"store":"/a","sess`, "null", "[]", `{"pins":{}}`, `{"pins":[{}]}`, strings.Repeat(" ", 5<<20)} {
		if err := os.WriteFile(f.Path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.List("/a"); len(got) != 0 {
			t.Errorf("%.20q: %v", damage, got)
		}
		if was, err := f.Remove("/a", "s1"); was || err != nil {
			t.Errorf("%.20q: removed %v, %v", damage, was, err)
		}
	}
	add(t, f, "/a", "s2")
	if got := list(f, "/a"); got != "s2" {
		t.Error(got)
	}
}

func TestTheNumberOfPinsIsBounded(t *testing.T) {
	f := file(t)
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `,{"store":"/a","session":"s%d"}`, i)
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path, []byte(`{"pins":[`+text.String()[1:]+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Add("/b", "more"); !errors.Is(err, manager.ErrTooManyPins) {
		t.Errorf("one too many: %v", err)
	}
	add(t, f, "/a", "s7") // it is pinned already
	if was, err := f.Remove("/a", "s0"); !was || err != nil {
		t.Errorf("removed %v, %v", was, err)
	}
	add(t, f, "/b", "more")
	if err := f.Add("/a", strings.Repeat("x", 5<<20)); !errors.Is(err, manager.ErrTooManyPins) {
		t.Errorf("an id that fills the file: %v", err)
	}
	if got := f.List("/a"); len(got) != 999 || got[0].Session != "s7" {
		t.Errorf("%d pins, %+v", len(got), got[0])
	}
	if left, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(left) != 1 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
