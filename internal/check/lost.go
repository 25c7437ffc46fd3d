package check

import (
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// span is a run of ordinals.
type span struct{ first, last uint64 }

// lostRow takes note of what a row of a skeleton records as lost.
func (v *verifier) lostRow(sk *codec.Skeleton, i int) {
	if segment.Erased(sk, i) {
		v.erased = extended(v.erased, sk.First()+uint64(i))
	}
	if !segment.Lost(sk, i) {
		return
	}
	ord := sk.First() + uint64(i)
	if object := segment.LostObject(sk, i); object != "" {
		v.lost[object] = ord
		return
	}
	v.standIns = extended(v.standIns, ord)
}

// extended returns spans with the number that comes next.
func extended(list []span, n uint64) []span {
	if k := len(list); k > 0 && list[k-1].last+1 == n {
		list[k-1].last = n
		return list
	}
	return append(list, span{n, n})
}

// recorded reports whether an earlier repair recorded the loss of an object of the session.
func (v *verifier) recorded(key string) bool {
	_, ok := v.lost[strings.TrimPrefix(key, layout.SessionPrefix(v.id))]
	return ok
}

// losses lists what earlier repairs recorded as lost.
func (v *verifier) losses() {
	for _, s := range v.standIns {
		what := fmt.Sprintf("entry %d is lost", s.first)
		if s.last > s.first {
			what = fmt.Sprintf("entries %d to %d are lost", s.first, s.last)
		}
		v.note(Lost, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%s; a repair recorded that in their place",
			what)
	}
	for _, s := range v.erased {
		what := fmt.Sprintf("entry %d is erased", s.first)
		if s.last > s.first {
			what = fmt.Sprintf("entries %d to %d are erased", s.first, s.last)
		}
		v.note(Erased, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%s", what)
	}
	for _, info := range v.inv.Erasures {
		v.note(Leftover, info.Key, 0, nil, "an erasure was begun and is not complete; erase, gc or repair completes it")
	}
	for _, s := range v.stateless {
		what := fmt.Sprintf("the state of commit %d is lost", s.first)
		if s.last > s.first {
			what = fmt.Sprintf("the states of commits %d to %d are lost", s.first, s.last)
		}
		v.note(Lost, layout.SessionPrefix(v.id)+layout.Transcript, 0, nil, "%s; a repair recorded that", what)
	}
	for _, object := range sorted(v.lost) {
		key := layout.SessionPrefix(v.id) + object
		if strings.HasPrefix(object, layout.Checkpoints) {
			key = object
		}
		v.note(Lost, key, 0, nil, "lost; a repair recorded that in entry %d", v.lost[object])
	}
}
