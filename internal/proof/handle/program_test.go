package handle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The calls that a lane can make, one letter each.
const (
	opAppend  = 'A' // one message at the head
	opReply   = 'P' // one message with an explicit parent
	opRoot    = 'N' // one whole line that is a new root
	opCommit  = 'C' // with a document of its own
	opKeyed   = 'K' // with the one key, and always the same document
	opOther   = 'J' // with the one key, and another document
	opEntries = 'E' // with Turn.Entries
	opBased   = 'B' // with Turn.Entries, and Turn.Base = the commit that the session of the program began with
	opBoth    = 'Q' // with the one key and Turn.Entries, always the same
	opLabel   = 'L'
	opSide    = 'S' // Switch to the branch "side"
	opMain    = 'T' // Switch to the branch "main"
	opRebase  = 'R'
	opReload  = 'D'
	opClaim   = 'M'
	opClose   = 'X'
	opVisit   = 'O' // another process opens the session and closes it
	opWrite   = 'W' // another process opens the session, appends, commits and closes it
)

// Sets of calls.
const (
	appends    = "APN"
	turns      = "CKJEBQ"
	entryTurns = "EBQ"
	keyedTurns = "KJQ"
	commits    = turns + "L"
	navigates  = "ST"
	exclusive  = "STRDM" // take the lead
	writers    = commits + navigates + "RM"
	allOps     = appends + turns + "LSTRDMXOW"
)

func in(kind byte, set string) bool { return strings.IndexByte(set, kind) >= 0 }

// op is one call of a lane.
type op struct {
	kind   byte
	cancel bool // its context may be cancelled at any moment
}

// lane is a goroutine that makes calls on one handle, one after the other.
type lane struct {
	handle int
	ops    []op
}

// program is what the lanes do, and how much the scheduler may do to them. Its text is
//
//	replace both reads f1 c1 d1 | 1:A,C! | 1:A,K | 2:C
//
// the kind of store and the flags, then the lanes: the number of the handle and its calls.
type program struct {
	appends bool // the store appends
	fresh   bool // flag new: the session does not exist yet
	both    bool // SessionOptions.KeepBoth
	reads   bool // reads of the store are scheduled too, and may fail
	eager   bool // the usual order: lanes go on before requests are answered
	snaps   bool // a snapshot every two commits
	big     bool // the session is so large that its log is sealed or closed
	crash   bool // flag power: the power fails in the end
	lie     int  // the store breaks its contract, to show that the judge notices
	faults  int  // outcomes other than "done"
	cancels int
	deaths  int // of processes, in the middle of a write
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

// smaller are the programs that a failing one is tried as: without a lane, without a call, without a flag,
// with less of a budget.
func (p program) smaller() (list []program) {
	add := func(change func(q *program)) {
		q := p
		q.lanes = slices.Clone(p.lanes)
		change(&q)
		list = append(list, q)
	}
	for i := range p.lanes {
		if len(p.lanes) > 1 {
			add(func(q *program) { q.lanes = slices.Delete(q.lanes, i, i+1) })
		}
	}
	for i, l := range p.lanes {
		for k, o := range l.ops {
			if len(l.ops) > 1 {
				add(func(q *program) { q.lanes[i].ops = slices.Delete(slices.Clone(l.ops), k, k+1) })
			}
			if o.cancel {
				add(func(q *program) {
					q.lanes[i].ops = slices.Clone(l.ops)
					q.lanes[i].ops[k].cancel = false
				})
			}
		}
	}
	for i, f := range p.flags() {
		if *f.on {
			add(func(q *program) { *q.flags()[i].on = false })
		}
	}
	for i, c := range p.budgets() {
		if *c.n > 0 {
			add(func(q *program) { *q.budgets()[i].n = 0 })
		}
		if *c.n > 1 {
			add(func(q *program) { *q.budgets()[i].n-- })
		}
	}
	return list
}

// draw makes a program at random, of the calls that the engine supports.
func draw(rng *rand.Rand, supported string) program {
	p := program{
		appends: rng.IntN(2) == 0, both: rng.IntN(4) == 0, reads: rng.IntN(3) == 0, fresh: rng.IntN(12) == 0,
		eager: rng.IntN(2) == 0, snaps: rng.IntN(10) == 0,
		faults: rng.IntN(3), cancels: rng.IntN(3),
	}
	_ = rng.IntN(10) // so that a seed keeps its program
	if p.appends {
		p.crash, p.deaths = rng.IntN(3) == 0, rng.IntN(2)
	}
	// Appends and commits are what most programs do most of the time.
	often := "AAAACCCCKLR" + supported
	for i := range 2 + rng.IntN(2) {
		l := lane{handle: 1}
		if i > 0 && rng.IntN(3) == 0 {
			l.handle = 2
		}
		for range 1 + rng.IntN(4) {
			kind := often[rng.IntN(len(often))]
			if in(kind, supported) {
				l.ops = append(l.ops, op{kind, rng.IntN(3) == 0 && !in(kind, "XOW")})
			}
		}
		if len(l.ops) > 0 {
			p.lanes = append(p.lanes, l)
		}
	}
	if len(p.lanes) == 0 {
		p.lanes = []lane{{1, []op{{kind: opAppend}, {kind: opCommit, cancel: true}}}}
	}
	return p
}
