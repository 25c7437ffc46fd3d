package checkpoint

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

// index returns the reference to an index object over refs.
func index(refs []codec.Ref) codec.Ref {
	first, last := refs[0], refs[len(refs)-1]
	return codec.Ref{First: first.First, Count: uint32(last.First + uint64(last.Count) - first.First), FirstSeq: first.FirstSeq, Rnd: "i"}
}

func TestSegmentMapFolds(t *testing.T) {
	var m SegmentMap
	const segments = 64*64*3 + 64*5 + 7
	for i := range uint64(segments) {
		if err := m.Append(testRef(i)); err != nil {
			t.Fatal(err)
		}
		before := m
		for {
			level, refs, ok := m.FoldCandidate()
			if !ok {
				break
			}
			if len(refs) != FoldWidth {
				t.Fatalf("%d candidates", len(refs))
			}
			if err := m.Fold(level, index(refs)); err != nil {
				t.Fatal(err)
			}
		}
		if before.Next() != m.Next() || before.check() != nil {
			t.Fatalf("segment %d: a copy made before the fold has changed", i)
		}
	}
	if len(m.Levels) != 3 || len(m.Levels[0]) != 7 || len(m.Levels[1]) != 5 || len(m.Levels[2]) != 3 {
		t.Errorf("levels of %d, %d, %d references", len(m.Levels[0]), len(m.Levels[1]), len(m.Levels[2]))
	}
	if m.Next() != 6*segments || m.check() != nil {
		t.Errorf("covers %d, %v", m.Next(), m.check())
	}
	for ord := uint64(0); ord < 6*segments; ord += 5 {
		level, ref, ok := m.Find(ord)
		if !ok || ord < ref.First || ord >= ref.First+uint64(ref.Count) || (level == 0) != (ref.Count == 6) {
			t.Fatalf("ordinal %d: level %d, %+v, %v", ord, level, ref, ok)
		}
	}
	if _, _, ok := m.Find(6 * segments); ok {
		t.Error("an ordinal behind the end is found")
	}
	var next uint64
	for _, ref := range m.Refs {
		if ref.First != next {
			t.Fatalf("Refs: %d after %d", ref.First, next)
		}
		next += uint64(ref.Count)
	}
	for level := range m.Refs {
		if level != 2 {
			t.Errorf("the first reference is of level %d", level)
		}
		break
	}
}

func TestSegmentMapRefuses(t *testing.T) {
	var m SegmentMap
	if err := m.Append(testRef(1)); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("a gap at the start: %v", err)
	}
	if _, _, ok := m.Find(0); ok || m.Next() != 0 {
		t.Error("an empty map finds something")
	}
	for i := range uint64(64) {
		if err := m.Append(testRef(i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, ref := range map[string]codec.Ref{"gap": testRef(65), "overlap": testRef(63), "empty": {First: 6 * 64}} {
		if err := m.Append(ref); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := index(m.Levels[0])
	for name, edit := range map[string]func(*codec.Ref){
		"first": func(r *codec.Ref) { r.First++ }, "count": func(r *codec.Ref) { r.Count-- }, "seq": func(r *codec.Ref) { r.FirstSeq++ },
	} {
		ref := good
		edit(&ref)
		if err := m.Fold(0, ref); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("fold with another %s: %v", name, err)
		}
	}
	for _, level := range []int{-1, 1, 7} {
		if err := m.Fold(level, good); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("fold of level %d: %v", level, err)
		}
	}
	for i := uint64(64); i < maxLevelRefs; i++ {
		if err := m.Append(testRef(i)); err != nil {
			t.Fatal(err)
		}
	}
	var limit *codec.LimitError
	if err := m.Append(testRef(maxLevelRefs)); !errors.As(err, &limit) || limit.Value != maxLevelRefs+1 {
		t.Errorf("far behind with folding: %v", err)
	}
}

// Find and FindSeq against a list that is never folded.
func TestSegmentMapAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m SegmentMap
		var list []codec.Ref
		var ord, seq uint64
		for range rapid.IntRange(0, 300).Draw(t, "segments") {
			ref := codec.Ref{First: ord, Count: uint32(rapid.IntRange(1, 9).Draw(t, "count")), FirstSeq: seq}
			ord, seq = ord+uint64(ref.Count), seq+uint64(rapid.IntRange(0, 4).Draw(t, "commits"))
			if err := m.Append(ref); err != nil {
				t.Fatal(err)
			}
			list = append(list, ref)
			if level, refs, ok := m.FoldCandidate(); ok && rapid.Bool().Draw(t, "fold") {
				if err := m.Fold(level, index(refs)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(12) {
			at := ord * i / 10
			_, ref, ok := m.Find(at)
			if ok != (at < ord) || ok && (at < ref.First || at >= ref.First+uint64(ref.Count)) {
				t.Fatalf("ordinal %d of %d: %+v, %v", at, ord, ref, ok)
			}
			want := seq * i / 10
			_, ref, ok = m.FindSeq(want)
			if ok != (len(list) > 0) {
				t.Fatalf("seq %d: %v", want, ok)
			}
			// No segment after the reference starts at or before that seq.
			for _, s := range list {
				if s.First >= ref.First+uint64(ref.Count) && s.FirstSeq <= want {
					t.Fatalf("seq %d: found %+v, but %+v starts in time", want, ref, s)
				}
			}
		}
	})
}
