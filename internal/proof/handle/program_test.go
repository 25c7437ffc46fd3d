package handle

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The calls that a lane can make, one letter each.
const (
	opAppend  = 'A' // one message at the head
	opReply   = 'P' // one message with an explicit parent
	opRoot    = 'N' // one whole line that is a new root
	opContext = 'Z' // SetContext
	opCommit  = 'C' // with its own document, like all turns
	opKeyed   = 'K' // with the one key, and always the same document
	opOther   = 'J' // with the one key, and another document
	opEntries = 'E' // with Turn.Entries
	opKeep    = 'F' // with KeepBoth
	opBased   = 'B' // with Turn.Entries, and Turn.Base = the commit that the session of the program began with
	opOnView  = 'V' // with Turn.Entries, and Turn.Base = the commit that the handle shows
	opKeepOld = 'G' // as opBased, with KeepBoth
	opRetry   = 'Q' // as opBased, with the one key, and always the same
	opLabel   = 'L'
	opSide    = 'S' // Switch to the branch "side"
	opMain    = 'T' // Switch to the branch "main"
	opSettle  = 'R'
	opDiscard = 'U'
	opReload  = 'D'
	opClaim   = 'M'
	opClose   = 'X'
	opVisit   = 'O' // another process opens the session and closes it
	opWrite   = 'W' // another process opens the session, appends, commits and closes it
)

// Sets of calls.
const (
	appends     = "APN"
	turns       = "CKJEFBVGQ"
	entryTurns  = "EBVGQ"
	based       = "BVGQ"
	old         = "BGQ" // those based on the start of the session
	keeps       = "FG"
	annotations = "L"
	navigates   = "ST"
	forgets     = "UD"
	visits      = "OW"
	commits     = turns + annotations + navigates + "M"
	allOps      = appends + "Z" + commits + "RUDXOW"
)

func in(kind byte, set string) bool { return strings.IndexByte(set, kind) >= 0 }

// op is one call of a lane.
type op struct {
	kind   byte
	cancel bool // its context may be cancelled at any moment
}

// lane is a goroutine that makes calls on one handle, one after another.
type lane struct {
	handle int
	ops    []op
}

// program is the lanes, and the number of faults that the scheduler may inject. Its text is
//
//	replace both reads f1 c1 d1 | 1:A,C! | 1:A,K | 2:C
//
// the kind of store and the flags, then the lanes: the number of the handle and its calls.
type program struct {
	appends bool // the store appends
	fresh   bool // flag new: the session does not exist yet
	both    bool // SessionOptions.KeepBoth
	reads   bool // reads of the store are scheduled too, and may fail
	eager   bool // the default order: lanes continue before requests are answered
	snaps   bool // a snapshot every two commits
	big     bool // the session is so large that its log is sealed or closed
	crash   bool // flag power: a power loss at the end
	lie     int  // the store breaks its contract, to test the judge
	faults  int  // number of outcomes other than "done"
	cancels int
	deaths  int // number of processes that die during a write
	lanes   []lane
}

func (p program) String() string {
	var b strings.Builder
	b.WriteString(map[bool]string{false: "replace", true: "append"}[p.appends])
	for _, f := range p.flags() {
		if *f.on {
			b.WriteString(" " + f.name)
		}
	}
	for _, c := range p.budgets() {
		if *c.n > 0 {
			fmt.Fprintf(&b, " %c%d", c.name, *c.n)
		}
	}
	for _, l := range p.lanes {
		fmt.Fprintf(&b, " | %d:", l.handle)
		for i, o := range l.ops {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte(o.kind)
			if o.cancel {
				b.WriteByte('!')
			}
		}
	}
	return b.String()
}

type flag struct {
	name string
	on   *bool
}

func (p *program) flags() []flag {
	return []flag{
		{"new", &p.fresh},
		{"both", &p.both},
		{"reads", &p.reads},
		{"eager", &p.eager},
		{"snaps", &p.snaps},
		{"big", &p.big},
		{"power", &p.crash},
	}
}

type budget struct {
	name byte
	n    *int
}

func (p *program) budgets() []budget {
	return []budget{{'f', &p.faults}, {'c', &p.cancels}, {'d', &p.deaths}, {'l', &p.lie}}
}

func parse(text string) (p program, err error) {
	parts := strings.Split(text, "|")
	words := strings.Fields(parts[0])
	if len(words) == 0 || words[0] != "append" && words[0] != "replace" {
		return p, fmt.Errorf("program %q: want append or replace first", text)
	}
	p.appends = words[0] == "append"
	for _, word := range words[1:] {
		if !p.set(word) {
			return p, fmt.Errorf("program %q: no flag %q", text, word)
		}
	}
	for _, part := range parts[1:] {
		l, err := parseLane(strings.TrimSpace(part))
		if err != nil {
			return p, fmt.Errorf("program %q: %w", text, err)
		}
		p.lanes = append(p.lanes, l)
	}
	return p, nil
}

func (p *program) set(word string) bool {
	for _, f := range p.flags() {
		if f.name == word {
			*f.on = true
			return true
		}
	}
	for _, c := range p.budgets() {
		if n, err := strconv.Atoi(word[1:]); err == nil && word[0] == c.name {
			*c.n = n
			return true
		}
	}
	return false
}

func parseLane(text string) (l lane, err error) {
	number, calls, ok := strings.Cut(text, ":")
	if l.handle, err = strconv.Atoi(number); !ok || err != nil || l.handle < 1 {
		return l, fmt.Errorf("lane %q: want the number of a handle, a colon, calls", text)
	}
	for call := range strings.SplitSeq(calls, ",") {
		kind, cancel := strings.CutSuffix(call, "!")
		if len(kind) != 1 || !in(kind[0], allOps) {
			return l, fmt.Errorf("lane %q: no call %q", text, call)
		}
		l.ops = append(l.ops, op{kind[0], cancel})
	}
	return l, nil
}

// draw makes a program at random.
func draw(rng *rand.Rand) program {
	p := program{
		appends: rng.IntN(2) == 0, both: rng.IntN(5) == 0, reads: rng.IntN(3) == 0, fresh: rng.IntN(12) == 0,
		eager: rng.IntN(2) == 0, snaps: rng.IntN(10) == 0,
		faults: rng.IntN(3), cancels: rng.IntN(3),
	}
	if p.appends {
		p.crash, p.deaths = rng.IntN(3) == 0, rng.IntN(2)
	}
	// Most programs consist mainly of appends and commits.
	const often = "AAAACCCCKLRR" + allOps
	for i := range 2 + rng.IntN(2) {
		l := lane{handle: 1}
		if i > 0 && rng.IntN(3) == 0 {
			l.handle = 2
		}
		for range 1 + rng.IntN(4) {
			kind := often[rng.IntN(len(often))]
			l.ops = append(l.ops, op{kind, rng.IntN(3) == 0 && !in(kind, "XOW")})
		}
		p.lanes = append(p.lanes, l)
	}
	return p
}

// pairs returns programs of two short lanes: on one handle, with lanes that start at once and lanes that wait, and on
// two, on both kinds of store.
func pairs() (list []string) {
	for _, store := range []string{"replace", "append"} {
		for i, a := range lanes {
			for _, b := range lanes[i:] {
				list = append(list, store+" f1 c1 | 1:"+a+" | 1:"+b, store+" eager f1 c1 | 1:"+a+" | 1:"+b)
			}
		}
	}
	for _, store := range []string{"replace", "append", "append power d1", "append both", "replace both"} {
		for _, a := range lanes {
			for _, b := range others {
				list = append(list, store+" f1 | 1:"+strings.ReplaceAll(a, "!", "")+",R | 2:"+b)
			}
		}
	}
	return list
}

// lanes are paired with each other, and with those of another handle.
var (
	lanes = []string{
		"A,C!", "A,K!", "A,L", "A,S", "A,R!", "A,D", "A,M", "A,X", "A,C,A,C", "E!,E", "B,C", "A,V,C", "Q!,Q", "J,K",
		"N,C", "P,C", "W", "A,F", "A,C,F", "A,G,D", "A,U,C", "Z,C", "S,T",
	}
	others = []string{"A,C", "L", "A,K", "S", "M", "M,C"}
)

// deep are programs that are searched further: typical ones, and ones that pairs does not make.
var deep = []string{
	"replace f1 c1 | 1:A,C! | 1:A,C",
	"append f1 c1 | 1:A,C! | 1:A,C",
	"replace eager f1 c1 | 1:C | 1:A,C! | 1:A,C",
	"append eager f1 c1 | 1:C | 1:A,C! | 1:A,C",
	"replace eager f1 | 1:C | 1:K | 1:K",
	"append eager f1 | 1:A,K | 1:K | 1:K,L",
	"replace eager f1 c1 | 1:E! | 1:E | 1:A,C",
	"append eager f1 c1 | 1:V! | 1:V | 1:A,C",
	"append eager f1 c1 | 1:B! | 1:B | 2:E",
	"append eager both f1 c1 | 1:B! | 1:B | 2:E",
	"replace eager f1 | 1:C | 1:Q | 1:Q,C",
	"replace f1 | 1:Q,Q,C | 2:Q,D,C",
	"replace eager both f1 | 1:A,C | 1:A,C | 2:A,C",
	"append eager both f1 | 1:A,C | 1:N,C | 2:A,C",
	"append power f1 d1 | 1:A,C | 2:X | 3:A,C",
	"append power f1 d1 | 1:A,C,F | 2:A,C,W",
	"append power big f1 d1 | 1:A,C,X | 2:O,W",
	"append big f1 | 1:A,C | 1:X",
	"replace big f1 | 1:A,C | 1:A,C,X",
	"replace new f1 c1 | 1:A,C! | 1:A,C",
	"append new f1 c1 | 1:A,C! | 1:A,C",
	"append new eager f1 | 1:A,C | 2:A,C",
	"replace reads f1 c1 | 1:A,C!,R | 2:A,C",
	"append reads f1 c1 | 1:A,C!,R | 2:A,C",
	"replace snaps eager f1 c1 | 1:A,C! | 1:C,S",
	"replace reads eager c1 | 1:K | 2:C,A | 2:K,R!",
	"replace f1 | 1:A,C,L,R | 2:M,C",
	"append f1 | 1:A,C,F,D,C | 2:M,C",
}
