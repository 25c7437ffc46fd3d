package checkpoint

import (
	"strings"
	"testing"
)

// Resume must be within the file's bytes, and is bounded.
func TestResumeRefused(t *testing.T) {
	for name, change := range map[string]func(r *Resume){
		"no hash": func(r *Resume) { r.Hash = "" }, "before the file": func(r *Resume) { r.From = -1 },
		"after it": func(r *Resume) { r.From = 58_000_001 }, "a negative line": func(r *Resume) { r.Line = -1 },
		"no entry":  func(r *Resume) { r.Entry = "" },
		"long name": func(r *Resume) { r.Entry = strings.Repeat("x", MaxName+1) },
		"long":      func(r *Resume) { r.State = strings.Repeat("x", MaxResume+1) },
	} {
		r := resumedRecord()
		change(r.Source.Resume)
		if _, _, err := r.AppendLine(nil, testKey, testPrev, testSince); err == nil {
			t.Errorf("%s: it is written", name)
		}
	}
}

// A source without Resume differs from one with it, but need not be stored again.
func TestSourceWhole(t *testing.T) {
	s := resumedSource()
	whole := s.Whole()
	if whole.Resume != nil || s.Resume == nil || whole.SHA256 != s.SHA256 || (*Source)(nil).Whole() != nil {
		t.Errorf("%+v of %+v", whole, s)
	}
	if !whole.Equal(s) || s.Equal(whole) || !s.Equal(resumedSource()) {
		t.Error("Equal")
	}
}
