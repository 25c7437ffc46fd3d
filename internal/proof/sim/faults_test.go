package sim

import (
	"strings"
	"time"
)

// fault is a set of things that can happen to a message.
type fault uint32

// What can happen. The first ones happen to writes and to reads, the next to writes, the rest to reads.
const (
	dropRequest fault = 1 << iota // the request is lost: no answer
	dropAnswer                    // the request arrives, its answer is lost
	busy409                       // 409 ConditionalRequestConflict: not applied
	busy429                       // 429 Too Many Requests: not applied
	busy503                       // 503 SlowDown: not applied
	fail500                       // 500, not applied, but nobody can know
	done500                       // 500, applied, but nobody can know
	lateRequest                   // no answer, and the request arrives much later
	duplicate                     // the request arrives once more, much later
	hiddenRetry                   // the answer is lost and the client asks again: 412 for its own write
	wrong412                      // 412 (or 404) where the condition held: not applied
	cutBody                       // the body of an answer ends too early, and nobody notices
	oldTag                        // the tag of the content before, with the new content (versitygw)
	cutList                       // a listing breaks off
	staleList                     // a listing shows what is gone, and not what is new
	lastFault
)

const (
	allFaults   = lastFault - 1
	writeFaults = wrong412<<1 - 1
	readFaults  = dropRequest | dropAnswer | busy429 | busy503 | fail500 | cutBody | oldTag
	listFaults  = dropRequest | busy503 | cutList | staleList
)

var faultNames = []string{
	"dropRequest", "dropAnswer", "busy409", "busy429", "busy503", "fail500", "done500", "lateRequest",
	"duplicate", "hiddenRetry", "wrong412", "cutBody", "oldTag", "cutList", "staleList",
}

func (f fault) String() string {
	var out []string
	for i, name := range faultNames {
		if f&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, "|")
}

// outage is how long a host is cut off at a time.
const outage = 7 * time.Second

// strike draws what happens to one message of a client; 0 = nothing.
func (w *world) strike(host *client, c *chance, of fault) fault {
	of &= w.plan.faults
	if w.plan.outages {
		// All that a host sends within one stretch of time shares its fate.
		o := seeded(w.Seed, uint64(host.id), uint64(w.now()/outage), 5)
		if f := fault(1) << o.n(len(faultNames)); o.one(4) && of&f != 0 && f&(cutBody|oldTag) == 0 {
			return f
		}
	}
	if w.plan.rate == 0 || of == 0 || !c.p(w.plan.rate) {
		return 0
	}
	var kinds [32]fault
	n := 0
	for f := fault(1); f < lastFault; f <<= 1 {
		if of&f != 0 {
			kinds[n] = f
			n++
		}
	}
	return kinds[c.n(n)]
}
