package model

import (
	"math/rand/v2"
	"testing"

	"github.com/coppice-go/coppice/internal/proof"
)

// The events of the turn model.
const (
	evCall uint8 = iota
	evLock
	evCancel
	evAnswer
	evAsk
	evResend
	evEndedStored
	evEndedLost
	evCompose
	evLostCondition
	evNotApplied
	evRequestLost
	evAnswerLost
	evLate
	evTear
	evArrived
	evDropped
	evPublish
	evHook
	evClose
	evOpened
	evDies
	evPower
	evRivalTurn
	evRivalDoc
	evRivalNote
	evRivalClaim
	evRivalKeyed
	evRivalKept
	evRivalKnown
	evRivalTomb
	evRivalAgain
	evRivalUnsynced
)

var turnEvents = map[uint8]string{
	evCall:          "operation %d (kind %d) is called",
	evLock:          "operation %d gets the lock",
	evCancel:        "operation %d: its context ends, answer %d",
	evAnswer:        "operation %d gets answer %d",
	evAsk:           "operation %d ends the doubt of operation %d: it looks",
	evResend:        "operation %d sends what is missing behind %d lines of the doubt",
	evEndedStored:   "the doubt of operation %d ends: stored",
	evEndedLost:     "the doubt of operation %d ends: not stored",
	evCompose:       "operation %d composes %d lines",
	evLostCondition: "operation %d finds another head, line %d",
	evNotApplied:    "operation %d is refused by the store, answer %d",
	evRequestLost:   "the request of operation %d is lost, answer %d",
	evAnswerLost:    "the request of operation %d is applied, its answer is lost: answer %d",
	evLate:          "the request of operation %d is delayed, answer %d",
	evTear:          "the append of operation %d ends early or its sync fails, answer %d",
	evArrived:       "the delayed request of operation %d is applied",
	evDropped:       "the delayed request of operation %d has no effect",
	evPublish:       "the checkpoint goes forward to line %d",
	evHook:          "the hook of operation %d ends",
	evClose:         "operation %d closes the handle, answer %d",
	evOpened:        "a new handle opens at line %d",
	evDies:          "the process dies; the log ends with line %d",
	evPower:         "power is lost; the log ends with line %d",
	evRivalTurn:     "another writer stores a turn: line %d",
	evRivalDoc:      "another writer stores a document: line %d",
	evRivalNote:     "another writer annotates: line %d",
	evRivalClaim:    "another writer claims: line %d",
	evRivalKeyed:    "another writer stores the turn of key 1: line %d",
	evRivalKept:     "another writer keeps a turn: up to line %d",
	evRivalKnown:    "another writer stores the known entry: line %d",
	evRivalTomb:     "another writer deletes the session: line %d",
	evRivalAgain:    "another writer uses the id again: up to line %d",
	evRivalUnsynced: "another writer dies between write and sync of line %d",
}

// turnStates bounds a search of the turn model, at about 8 GB: a run that reaches it fails.
const turnStates = 20_000_000

func turning(name string, from proof.Size, m turnModel, wrong string) row {
	return row{name, from, "turn", func(workers int) result { return search(m.space(), workers, turnStates) }, wrong}
}

// mutant is a rule that is left out or broken.
type mutant uint8

const (
	asItIs mutant = iota
	noteMovesView
	claimMovesView
	anyBaseMovesView
	judgedOnView
	keptMovesView
	noLook
	newIDs
	otherHead
	halfIsAll
	halfIsNothing
	keyLookedUpOnce
	answerUnconfirmed
	doubtStaysOwn
	refusedDropsDrafts
	refusedReordersDrafts
	keptAloneCounts
	cancelKeepsLock
	noteLendsBase
	baseMovesBuffer
	discardWithoutJudgement
	lockFreedEarly
	closeSendsDoubt
	hookUnderLock
	settleForgets
	createAlone
	viewPassesClaims
	doubtsDraftsForgotten
	digestWithoutDrafts
	optionLiftsFence
	idsAskedOnce
	oldLifeGoesOn
	existsBeforeKey
	closeUnconfirmed
	idleOnOldState
	restateAsPatch
	fromTakesDrafts
)

// walks takes random walks through all scenarios together, at twice their size. It returns the number of states
// visited.
func walks(t *testing.T, rep *proof.Report, n int) {
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 33)) //nolint:gosec // a seed that can be tried again
		m := walkModel(rng)
		sp := m.space()
		s := sp.begin
		var trace []event
		for {
			var next []turnState
			var events []event
			m.next(&s, func(u *turnState, e event) { next, events = append(next, *u), append(events, e) })
			if len(next) == 0 {
				break
			}
			i := rng.IntN(len(next))
			s = next[i]
			trace = append(trace, events[i])
			rep.Explored(1)
			if wrong := m.wrong(&s); wrong != "" {
				rep.Violation("turn, walk %d: %s\n%s", seed, wrong, story(&row{kind: "turn"}, &result{trace: trace}))
				return
			}
		}
	}
}

// walkModel mixes two scenarios, with the double of every bound.
func walkModel(rng *rand.Rand) *turnModel {
	a, b := &scenarios[rng.IntN(len(scenarios))], &scenarios[rng.IntN(len(scenarios))]
	m := a.model(rng.IntN(2) == 0)
	m.keepBoth, m.lines = a.keepBoth || b.keepBoth, linesMax
	m.ops = append([]turnOp(nil), a.ops...)
	for _, o := range b.ops {
		if len(m.ops) == opsMax {
			break
		}
		if o.of != 0 {
			o.of += uint8(len(a.ops))
		}
		if o.after != 0 {
			o.after += uint8(len(a.ops))
		}
		if int(max(o.of, o.after)) <= opsMax {
			m.ops = append(m.ops, o)
		}
	}
	m.left = turnBudget{
		turns: 1, docs: 1, notes: 1, claims: 1, keyed: 1, kept: 1, known: 1, tombs: 1, again: 1, unsynced: 1,
		faults: 2, lates: 1, cancels: 1, deaths: 1, powers: 1, opens: 3, rolls: 1, publishes: 1,
	}
	return &m
}
