package sim

import (
	"strings"
	"time"
)

// fault is a set of things that can happen to a message.
type fault uint32

// The faults. The first ones affect writes and reads, the next ones writes, the rest reads.
const (
	dropRequest fault = 1 << iota // the request is lost: no answer
	dropAnswer                    // the request arrives, its answer is lost
	busy409                       // 409 ConditionalRequestConflict: not applied
	busy429                       // 429 Too Many Requests: not applied
	busy503                       // 503 SlowDown: not applied
	fail500                       // 500, not applied, unknown to the client
	done500                       // 500, applied, unknown to the client
	lateRequest                   // no answer, and the request arrives much later
	duplicate                     // the request arrives once more, much later
	hiddenRetry                   // the answer is lost and the client retries: 412 for its own write
	wrong412                      // 412 (or 404) where the condition held: not applied
	cutBody                       // the body of an answer ends too early, without an error
	oldTag                        // the tag of the previous content, with the new content (versitygw)
	cutList                       // a listing ends with an error
	staleList                     // a listing shows deleted objects, and not new ones
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

// outage is the length of a host's network outage.
const outage = 7 * time.Second

// strike draws the fault of one message of a client; 0 = none.
func (w *world) strike(host *client, c *chance, of fault) fault {
	of &= w.plan.faults
	if w.plan.outages {
		// All messages of a host within one period have the same fate.
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
