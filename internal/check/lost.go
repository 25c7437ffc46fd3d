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

// are returns the subject of a finding about the span with its verb: one "is", several "are".
func (s span) are(one, several string) string {
	if s.last == s.first {
		return fmt.Sprintf(one+" is", s.first)
	}
	return fmt.Sprintf(several+" are", s.first, s.last)
}

// recorded reports whether an earlier repair recorded the loss of an object of the session.
func (v *verifier) recorded(key string) bool {
	_, ok := v.lost[strings.TrimPrefix(key, layout.SessionPrefix(v.id))]
	return ok
}

// losses lists what earlier repairs recorded as lost.
func (v *verifier) losses() {
	log := layout.SessionPrefix(v.id) + layout.Transcript
	for _, s := range v.standIns {
		v.note(Lost, log, 0, nil, "%s lost; a repair recorded that in their place",
			s.are("entry %d", "entries %d to %d"))
	}
	for _, s := range v.erased {
		v.note(Erased, log, 0, nil, "%s erased", s.are("entry %d", "entries %d to %d"))
	}
	for _, info := range v.inv.Erasures {
		v.note(Leftover, info.Key, 0, nil, "an erasure was begun and is not complete; erase, gc or repair completes it")
	}
	for _, s := range v.stateless {
		v.note(Lost, log, 0, nil, "%s lost; a repair recorded that",
			s.are("the state of commit %d", "the states of commits %d to %d"))
	}
	for _, object := range sorted(v.lost) {
		key := layout.SessionPrefix(v.id) + object
		if strings.HasPrefix(object, layout.Checkpoints) {
			key = object
		}
		v.note(Lost, key, 0, nil, "lost; a repair recorded that in entry %d", v.lost[object])
	}
}
