package pi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var testNow = readtest.Now

// testRand returns the same bytes in every run.

// sessionFile is a whole file as it was read.
type sessionFile struct {
	header  interop.Header
	entries []transcript.Entry
	parents []int64
	diag    []transcript.Diagnostic // of the reader, then of the parents
	reader  *Reader
}

func readFile(t testing.TB, data []byte) sessionFile {
	t.Helper()
	f, err := tryReadFile(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return f
}

func tryReadFile(r io.Reader) (sessionFile, error) {
	f := sessionFile{reader: NewReader(r, testNow)}
	var err error
	if f.header, err = f.reader.Header(); err != nil {
		return f, err
	}
	var lines []transcript.Line
	for {
		d, err := f.reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, err
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			return f, err
		}
		lines = append(lines, l)
		f.entries = append(f.entries, transcript.Entry{Ordinal: uint64(len(f.entries)), ID: l.ID, ParentID: l.ParentID, Type: l.Type, Time: l.Time, Raw: l.Raw})
	}
	var found []transcript.Diagnostic
	f.parents, found = transcript.ResolveParents(lines)
	f.diag = append(f.reader.Diagnostics(), found...)
	return f, nil
}

// path returns the path from the root to the entry with this ordinal.
func (f sessionFile) path(from int) []transcript.Entry {
	var path []transcript.Entry
	for at := int64(from); at >= 0; at = f.parents[at] {
		path = append(path, f.entries[at])
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// context is what a session that was just opened from the file shows.
func (f sessionFile) context(p transcript.Profile) transcript.Context {
	return transcript.BuildContext(f.path(len(f.entries)-1), p)
}

// brief writes messages as the vectors do: role:text, text cut at 36 characters, blocks joined with +.
func brief(messages []transcript.Message) []string {
	out := []string{}
	for _, m := range messages {
		var v struct {
			Role    string
			Content any
			Summary *string
			Command *string
		}
		_ = json.Unmarshal(m.Raw, &v)
		var said string
		switch c := v.Content.(type) {
		case string:
			said = c
		case []any:
			var blocks []string
			for _, b := range c {
				switch b, _ := b.(map[string]any); {
				case b == nil:
				case b["type"] == "text":
					s, _ := b["text"].(string)
					blocks = append(blocks, s)
				default:
					s, _ := b["type"].(string)
					blocks = append(blocks, s)
				}
			}
			said = strings.Join(blocks, "+")
		default:
			if v.Summary != nil {
				said = *v.Summary
			}
		}
		if r := []rune(said); len(r) > 36 {
			said = string(r[:36])
		}
		out = append(out, v.Role+":"+said)
	}
	return out
}

// TestPeerVectors holds the profiles against what the peers' own code answered.
func TestPeerVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Name, Input string
			Observed    map[string]struct {
				Outcome       string
				Messages      []string
				ThinkingLevel string
				Model         *string
				Entries       int
				Leaf          *string
			}
		}
	}
	if err := json.Unmarshal(testutil.SharedFile(t, "vectors/context.json"), &file); err != nil {
		t.Fatal(err)
	}
	profiles := map[string]transcript.Profile{"pi-1.5.2": transcript.Pi, "pi-0.73.1": transcript.Pi, "omp-18.2.9": transcript.OMP, "atomic-2026-08": transcript.Atomic}
	compared := 0
	for _, v := range file.Vectors {
		for peer, want := range v.Observed {
			p, ok := profiles[peer]
			if !ok {
				t.Fatalf("unknown peer %s", peer)
			}
			t.Run(v.Name+"/"+peer, func(t *testing.T) {
				f := readFile(t, []byte(v.Input))
				got := f.context(p)
				if want.Outcome != "ok" {
					if len(got.Messages) == 0 || len(f.diag) == 0 {
						t.Errorf("the peer fails here; ours should answer and say so: %d messages, diagnostics %v", len(got.Messages), f.diag)
					}
					omp, own := brief(f.context(transcript.OMP).Messages), brief(f.context(transcript.Coppice).Messages)
					if diff := cmp.Diff(omp, own); diff != "" {
						t.Errorf("coppice does not answer as omp:\n%s", diff)
					}
					return
				}
				if v.Name == "no_header" { // the one peer that answers has just overwritten the file
					return
				}
				compared++
				if diff := cmp.Diff(want.Messages, brief(got.Messages)); diff != "" {
					t.Errorf("messages (-peer +ours):\n%s", diff)
				}
				model, leaf := "", ""
				if want.Model != nil {
					model = *want.Model
				}
				if want.Leaf != nil {
					leaf = *want.Leaf
				}
				if v.Name == "v1_no_ids" {
					leaf = f.entries[3].ID
				}
				if diff := cmp.Diff([]any{want.ThinkingLevel, model, leaf, want.Entries},
					[]any{got.Settings.ThinkingLevel, got.Settings.Model, got.Leaf, len(f.entries)}); diff != "" {
					t.Errorf("level, model, leaf, entries (-peer +ours):\n%s", diff)
				}
			})
		}
	}
	if len(file.Vectors) != 44 {
		t.Errorf("%d vectors, want 44", len(file.Vectors))
	}
	t.Logf("%d answers compared", compared)
}

// TestPeerFixtures holds real version 1 sessions against the counts that the peers gave for them.
func TestPeerFixtures(t *testing.T) {
	tests := []struct {
		file             string
		entries          int
		pi, omp, atomic  int
		coppice          int // it omits answers that failed without a word
		roles            map[string]int
		level, model, wd string
	}{
		{
			"before-compaction.jsonl", 1002, 446, 439, 990, 441,
			map[string]int{"compactionSummary": 1, "user": 31, "assistant": 219, "toolResult": 192, "bashExecution": 3},
			"off", "anthropic/claude-opus-4-5", "",
		},
		{
			"large-session.jsonl", 1018, 914, 892, 914, 900,
			map[string]int{"user": 88, "assistant": 453, "toolResult": 373},
			"off", "anthropic/claude-sonnet-4-5", "",
		},
		{"prompt-cache-replay-session.v1.jsonl", 6, 6, 6, 6, 6, nil, "off", "openai/gpt-4o", "/tmp/prompt-cache-replay"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			f := readFile(t, testutil.SharedFile(t, "fixtures/pi/"+tt.file))
			if len(f.entries) != tt.entries || f.reader.Verbatim() || f.header.Version != 1 || f.reader.BadLines() != 0 {
				t.Fatalf("%d entries of version %d, verbatim %v, %d bad lines", len(f.entries), f.header.Version, f.reader.Verbatim(), f.reader.BadLines())
			}
			pi := f.context(transcript.Pi)
			if got := []int{len(pi.Messages), len(f.context(transcript.OMP).Messages), len(f.context(transcript.Atomic).Messages), len(f.context(transcript.Coppice).Messages)}; !cmp.Equal(got, []int{tt.pi, tt.omp, tt.atomic, tt.coppice}) {
				t.Errorf("messages for pi, omp, atomic, coppice: %v", got)
			}
			if tt.roles != nil {
				roles := map[string]int{}
				for _, m := range pi.Messages {
					roles[m.Role]++
				}
				if diff := cmp.Diff(tt.roles, roles); diff != "" {
					t.Errorf("roles (-want +got):\n%s", diff)
				}
			}
			if pi.Settings.ThinkingLevel != tt.level || !strings.HasPrefix(pi.Settings.Model, tt.model) {
				t.Errorf("settings %+v, want %s and %s", pi.Settings, tt.level, tt.model)
			}
			if tt.wd != "" && f.header.Cwd != tt.wd {
				t.Errorf("cwd %q", f.header.Cwd)
			}
		})
	}
}
