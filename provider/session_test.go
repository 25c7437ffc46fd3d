package provider_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

// lines returns the entries of a session file.
func lines(t *testing.T, file []byte) []transcript.Line {
	t.Helper()
	var list []transcript.Line
	for raw := range bytes.Lines(file) {
		raw = bytes.TrimSuffix(raw, []byte("\n"))
		l, err := transcript.ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		if l.Type != "session" {
			list = append(list, l)
		}
	}
	return list
}

// Every point of the example session, with its branches, edits, given up attempts and its compaction, is a request that
// each API takes; the conversation's calls keep their arguments.
func TestExampleSession(t *testing.T) {
	list := lines(t, session.JSONL())
	parents, _ := transcript.ResolveParents(list)
	for at := range list {
		if at%7 != 0 && at != len(list)-1 {
			continue
		}
		var path []transcript.Entry
		for i := int64(at); i >= 0; i = parents[i] {
			path = append([]transcript.Entry{list[i].Entry(uint64(i))}, path...)
		}
		c := transcript.BuildContext(path, transcript.Pi)
		calls := map[string]int{}
		for _, m := range c.Messages {
			for _, k := range m.Calls() {
				calls[k.Name+string(k.Arguments)]++
			}
		}
		for _, api := range provider.APIs() {
			r, err := provider.Convert(t.Context(), c, api, nil)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := check(r); wrong != "" {
				t.Errorf("entry %d, %s: %s", at, api, wrong)
			}
			left := map[string]int{}
			for _, m := range r.Messages {
				for _, k := range transcript.Inspect(m).Calls {
					left[k.Name+string(k.Arguments)]++
				}
			}
			for k, n := range calls {
				if left[k] != n {
					t.Errorf("entry %d, %s: %d calls %s, want %d", at, api, left[k], k, n)
				}
			}
		}
	}
}

// A request grows at its end: what was sent stays as it was, so that what the provider has cached counts.
func TestRequestsGrowAtTheEnd(t *testing.T) {
	list := lines(t, session.JSONL())
	parents, _ := transcript.ResolveParents(list)
	var path []transcript.Entry
	for i := int64(len(list) - 1); i >= 0; i = parents[i] {
		path = append([]transcript.Entry{list[i].Entry(uint64(i))}, path...)
	}
	for _, api := range provider.APIs() {
		var before []json.RawMessage
		for n := range path {
			if path[n].Type == "compaction" {
				before = nil
			}
			if m, ok := path[n].Message(); !ok || m.Role != "assistant" {
				continue // requests are made before the model speaks
			}
			r, err := provider.Convert(t.Context(), transcript.BuildContext(path[:n], transcript.Pi), api, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, was := range before {
				if i >= len(r.Messages) || string(r.Messages[i]) != string(was) {
					t.Fatalf("%s, entry %d: message %d was\n%s\nand is\n%s", api, n, i, was, at(r.Messages, i))
				}
			}
			before = r.Messages
		}
	}
}
