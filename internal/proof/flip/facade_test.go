package flip

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/internal/layout"
)

// truths are the readings of the undamaged store, and, for a store that appends, the readings with the log cut after
// each earlier commit: the possible results when the end of a log is lost.
type truths struct {
	s        *stored
	whole    map[string]*reading // by session
	shorter  []*reading
	shortens sync.Once
}

func truthsOf(s *stored) *truths {
	t := &truths{s: s, whole: map[string]*reading{}}
	for _, id := range []string{sid, pictures, parted, deleted} {
		r := readAll(s.backend(s.frozen()), id)
		t.whole[id] = &r
	}
	return t
}

// shorterLogs returns readings of the store as it was after each commit in the plain segments.
func (t *truths) shorterLogs() []*reading {
	t.shortens.Do(func() {
		logs := slices.DeleteFunc(slices.Sorted(maps.Keys(t.s.objects)), func(key string) bool {
			return !isLog(t.s, key) || sessionOf(key) != sid
		})
		for i, key := range logs {
			name, _, _ := layout.ParseSegmentKey(key)
			l, err := readLog(name, t.s.objects[key])
			if err != nil {
				continue
			}
			for _, end := range append([]int{l.opening}, l.ends...) {
				objects := maps.Clone(t.s.objects)
				for _, later := range logs[i+1:] {
					delete(objects, later)
				}
				objects[key] = objects[key][:end]
				if closes := end == l.ends[len(l.ends)-1] && i+1 < len(logs); closes {
					continue // same as the opening of the next segment
				}
				short := &stored{name: t.s.name, disk: true, objects: objects}
				r := readAll(short.backend(short.frozen()), sid)
				t.shorter = append(t.shorter, &r)
			}
		}
	})
	return t.shorter
}

// outcome is the effect of one damage that a user of the facade sees.
type outcome struct {
	verdict verdict
	wrong   string // the violation; "" = none
}

// judge reads the damaged store in every way, and verifies it.
func (t *truths) judge(key string, q []byte) outcome {
	id := sessionOf(key)
	if id == "" {
		id = sid
	}
	f := t.s.frozen().With(key, q)
	got, truth := readAll(t.s.backend(f), id), t.whole[id]
	if n := f.Writes.Load(); n != 0 {
		return outcome{silent, fmt.Sprintf("reading wrote %d times (I14)", n)}
	}
	if p, ok := got.answers["panic"]; ok {
		return outcome{silent, p.err.Error()}
	}
	if open := got.answers[id+" open"]; open.err != nil && id != deleted && !strings.Contains(open.err.Error(), "corrupt") {
		return outcome{silent, fmt.Sprintf("a damaged session is opened with %q", open.err)}
	}
	// On a disk the checkpoint is behind the log. If it is missing a listing must return what a handle returns from the
	// log.
	listed := got.answers["list "+id]
	if q == nil && t.s.disk && listed.text != "" && strings.HasSuffix(truth.answers[id+" head"].text, " "+listed.text) {
		got.answers["list "+id] = truth.answers["list "+id]
	}
	name, lost := got.differs(truth)
	named := got.named(truth, key)
	switch {
	case name == "" && !lost:
		return outcome{verdict: harmless}
	case name == "" && named:
		return outcome{verdict: detected}
	case name == "":
		return outcome{silent, fmt.Sprintf("reading tells, verify does not name the object: %v %v", got.verify, list(&got))}
	case !isLog(t.s, key):
		return outcome{silent, fmt.Sprintf("%s gives other content, and no error:\n%s", name, firstDifference(got.answers[name], truth.answers[name]))}
	}
	for _, short := range t.shorterLogs() {
		if other, _ := got.differs(short); other == "" {
			switch {
			case named:
				return outcome{verdict: lostTail}
			case bytes.Equal(q, t.s.objects[key][:min(len(q), len(t.s.objects[key]))]) && key == t.s.active:
				return outcome{verdict: shorter}
			}
			return outcome{silent, fmt.Sprintf("the end of the log is lost, and verify does not name the object: %v", list(&got))}
		}
	}
	return outcome{silent, fmt.Sprintf("%s gives what was never stored, and no error:\n%s", name, firstDifference(got.answers[name], truth.answers[name]))}
}

func list(r *reading) (out []string) {
	for _, p := range r.problems {
		out = append(out, problemText(p))
	}
	return out
}

func firstDifference(got, want answer) string {
	a, b := strings.Split(got.text, "\n"), strings.Split(want.text, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("got  %.300s\nwant %.300s (%v)", a[i], b[i], got.err)
		}
	}
	return fmt.Sprintf("%d lines instead of %d (%v)", len(a), len(b), got.err)
}
