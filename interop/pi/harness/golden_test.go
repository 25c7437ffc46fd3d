package harness

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: exact header, entries and diagnostics of files.
func TestGolden(t *testing.T) {
	testutil.Goldens(t, *update, 3, func(t *testing.T, data []byte) string {
		if !Detect(data) {
			t.Error("is not told")
		}
		s := read(t, string(data))
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n%s", s.header.Raw, s.outline())
		for _, d := range s.reader.Diagnostics() {
			fmt.Fprintf(&b, "line %d: %s: %s\n", d.Ordinal, d.Kind, d.Detail)
		}
		return b.String()
	})
}

// The contexts are those that the harness itself builds of these files, lane by lane.
func TestContexts(t *testing.T) {
	for _, c := range []struct {
		file, lane string
		want       []string
		settings   string
	}{
		{"transactions", "main", []string{"compactionSummary: SUMMARY", "custom: again", "assistant: second answer", "custom: noted", "user: third question"}, "faux/m2 low"},
		{"transactions", "scout", []string{"user: first question", "assistant: ", "toolResult: content of a.go", "assistant: first answer", "user: scout question", "user: scout goes on"}, "faux/m1 high"},
		{"lanes", "main", []string{"compactionSummary: SUM", "custom: kept question", "assistant: kept answer", "user: two"}, "p/m high"},
		{"lanes", "scout", []string{"user: one", "assistant: answer one", "user: scout asks"}, "p/m high"},
	} {
		data, err := os.ReadFile("testdata/" + c.file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		s := read(t, string(data))
		for _, profile := range []transcript.Profile{transcript.Coppice, transcript.Pi} {
			got := transcript.BuildContext(s.path(s.laneEnd(c.lane)), profile)
			if diff := cmp.Diff(c.want, says(got)); diff != "" {
				t.Errorf("%s, %s, %q:\n%s", c.file, c.lane, profile, diff)
			}
			if have := got.Settings.Model + " " + got.Settings.ThinkingLevel; have != c.settings {
				t.Errorf("%s, %s, %q: settings %q, want %q", c.file, c.lane, profile, have, c.settings)
			}
		}
	}
}

// laneEnd returns the end of a lane: the head for the main lane, the entry with its name for another.
func (s session) laneEnd(lane string) int64 {
	if lane == mainLane {
		return int64(len(s.entries)) - 1
	}
	for i, e := range s.entries {
		if strings.Contains(string(e.Raw), `"customType":"pi-harness.branch","data":{"name":"`+lane+`"`) {
			return int64(i)
		}
	}
	return -1
}
