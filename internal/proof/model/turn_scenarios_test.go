package model

import "github.com/coppice-go/coppice/internal/proof"

// scenario is a turnModel on both strategies.
type scenario struct {
	name     string
	from     proof.Size // the smallest size of a run that searches all of it
	larger   bool       // the larger sizes have a larger version
	keepBoth bool
	creates  bool
	ops      []turnOp
	left     turnBudget
}

func (s *scenario) model(replace bool) turnModel {
	return turnModel{replace: replace, keepBoth: s.keepBoth, creates: s.creates, lines: 8, ops: s.ops, left: s.left}
}

// The operations of the scenarios. keepLater: a retry after an error sets KeepBoth.
var (
	draft  = turnOp{kind: opAppend}
	draft1 = turnOp{kind: opAppend, who: 1}
	say    = turnOp{kind: opTurn, entry: true, doc: true, calls: 2, keepLater: true}
	post   = turnOp{kind: opTurn, who: 1, based: true, entry: true, doc: true, calls: 2, keepLater: true}
	note   = turnOp{kind: opNote, note: 1}
	note1  = turnOp{kind: opNote, who: 1, note: 1}
	claim  = turnOp{kind: opClaim, calls: 2}
	reload = turnOp{kind: opReload}
	read   = turnOp{kind: opRead, who: 1}
	stop   = turnOp{kind: opClose}
	stop1  = turnOp{kind: opClose, who: 1}
)

func (o turnOp) keyed(key, digest, calls uint8) turnOp {
	o.key, o.digest, o.calls = key, digest, calls
	return o
}

func (o turnOp) keeping() turnOp {
	o.keep = true
	return o
}

func (o turnOp) behind(first uint8) turnOp {
	o.after = first
	return o
}

// settling is the Settle of a caller whose turn, the operation of, is in doubt.
func settling(who, of uint8) turnOp {
	return turnOp{kind: opSettle, who: who, of: of, after: of, calls: 2}
}

// variant returns an operation with some fields changed.
func variant(o turnOp, change func(o *turnOp)) turnOp {
	change(&o)
	return o
}

var (
	unkept     = variant(say, func(o *turnOp) { o.keepLater = false })
	hooked     = variant(say, func(o *turnOp) { o.hook = true })
	sayKnown   = variant(say, func(o *turnOp) { o.known, o.keep = true, true })
	postKnown  = variant(post, func(o *turnOp) { o.known, o.keep = true, true })
	sayAtRoot  = variant(say, func(o *turnOp) { o.from, o.doc = true, false })
	moveToRoot = turnOp{kind: opMove, from: true}
	postMove   = turnOp{kind: opMove, who: 1, from: true, based: true, calls: 2}
	otherNote1 = variant(note1, func(o *turnOp) { o.note = 2 })
	discard    = turnOp{kind: opDiscard}
	say1       = variant(say, func(o *turnOp) { o.who = 1 })
)

var scenarios = []scenario{
	{
		name: "turns of two callers", from: proof.CI, ops: []turnOp{draft, say, post, read},
		left: turnBudget{turns: 1, docs: 1, faults: 1, lates: 1},
	},
	{
		name: "annotations", ops: []turnOp{note1, otherNote1.keyed(1, 2, 2), post},
		left: turnBudget{turns: 1, notes: 1, faults: 1, lates: 1},
	},
	{
		name: "annotations and turns", from: proof.CI, ops: []turnOp{note1, note, say},
		left: turnBudget{turns: 1, notes: 1, claims: 1, faults: 1, lates: 1},
	},
	{
		name: "keys", ops: []turnOp{draft, say.keyed(1, 1, 2), post.keyed(1, 1, 2).keeping(), note1.keyed(1, 2, 1)},
		left: turnBudget{turns: 1, keyed: 1, faults: 1, lates: 1},
	},
	{
		name: "a doubt, settled", from: proof.CI, ops: []turnOp{draft, say, settling(0, 2), note1, draft1},
		left: turnBudget{turns: 1, faults: 2, lates: 1, rolls: 1},
	},
	{
		name: "a doubt, another call, a retry", ops: []turnOp{draft, say.keyed(1, 1, 3), note1, draft},
		left: turnBudget{turns: 1, faults: 1, lates: 1, rolls: 1},
	},
	{
		name: "a doubt, forgotten", from: proof.CI,
		ops:  []turnOp{draft, say, discard.behind(2), reload, note1, say.behind(3)},
		left: turnBudget{faults: 1, lates: 1, unsynced: 1, powers: 1},
	},
	{
		name: "drafts", larger: true, ops: []turnOp{draft, draft, say},
		left: turnBudget{turns: 1, faults: 1, lates: 1, cancels: 1},
	},
	{
		name: "claims", larger: true, ops: []turnOp{claim, say},
		left: turnBudget{turns: 1, claims: 2, faults: 1, lates: 1},
	},
	{
		name: "fences", from: proof.CI, ops: []turnOp{say, note1, reload, read},
		left: turnBudget{claims: 1, notes: 1, faults: 1, lates: 1},
	},
	{
		name: "kept turns", larger: true, keepBoth: true, ops: []turnOp{draft, say},
		left: turnBudget{turns: 1, kept: 1, claims: 1, faults: 1, lates: 1},
	},
	{
		name: "kept branches", keepBoth: true, ops: []turnOp{post.keeping(), unkept, note1},
		left: turnBudget{turns: 1, claims: 1, faults: 1, lates: 1},
	},
	{
		name: "kept turns, settled", ops: []turnOp{post.keeping(), settling(1, 1), note},
		left: turnBudget{turns: 1, kept: 1, faults: 2, lates: 1},
	},
	{
		name: "kept turns and deaths", larger: true, ops: []turnOp{post.keyed(1, 1, 3).keeping()},
		left: turnBudget{turns: 1, kept: 1, faults: 1, lates: 1, deaths: 1, opens: 1, powers: 1},
	},
	{
		name: "creation", from: proof.CI, creates: true, ops: []turnOp{draft, say.keyed(1, 1, 3), say1},
		left: turnBudget{turns: 1, keyed: 1, faults: 1, lates: 1, deaths: 1, opens: 1},
	},
	{
		name: "a deleted id, used again", ops: []turnOp{note1, post.keyed(1, 2, 2), reload, stop},
		left: turnBudget{tombs: 1, again: 1, faults: 1, lates: 1, opens: 1},
	},
	{
		name: "known ids", larger: true, ops: []turnOp{sayKnown, postKnown, draft},
		left: turnBudget{known: 1, turns: 1, faults: 1, lates: 1},
	},
	{
		name: "moves", ops: []turnOp{draft, moveToRoot.keyed(1, 2, 2), postMove, sayAtRoot},
		left: turnBudget{turns: 1, faults: 1, lates: 1},
	},
	{
		name: "waiting and cancelled", from: proof.CI, ops: []turnOp{draft, hooked, note1, post, stop1},
		left: turnBudget{turns: 1, cancels: 1, faults: 1, lates: 1},
	},
	{
		name: "power, checkpoints, close", ops: []turnOp{say.keyed(1, 1, 2), reload, stop1},
		left: turnBudget{keyed: 1, unsynced: 1, faults: 1, powers: 1, publishes: 1, opens: 1, rolls: 1},
	},
}

// turnRows are the unbroken rules. At the size of each change, some are searched with one more fault and rival.
func turnRows() (rows []row) {
	for i := range scenarios {
		s := scenarios[i]
		rows = append(rows, s.row("turn, log: ", false), s.row("turn, objects: ", true))
		if s.larger {
			s.from = proof.CI
			s.left.turns, s.left.faults = s.left.turns+1, s.left.faults+1
			rows = append(rows, s.row("turn, log, larger: ", false), s.row("turn, objects, larger: ", true))
		}
	}
	return rows
}

func (s *scenario) row(kind string, replace bool) row {
	return turning(kind+s.name, s.from, s.model(replace), "")
}

// mutants are the rules to leave out or break, each with a scenario and a strategy in which that is visible.
var mutants = []struct {
	without  mutant
	name     string
	scenario string
	replace  bool
	wrong    string
}{
	{noteMovesView, "an annotation moves the view", "annotations and turns", true, "lost update"},
	{claimMovesView, "Claim moves the view", "claims", true, "lost update"},
	{anyBaseMovesView, "a turn with a foreign Base moves the view", "turns of two callers", true, "lost update"},
	{judgedOnView, "a base is judged on the view, not on the tip", "turns of two callers", true, "lost update"},
	{keptMovesView, "KeepBoth moves the view", "kept branches", true, "fence"},
	{viewPassesClaims, "the view passes another writer's claim", "fences", true, "fence"},
	{optionLiftsFence, "the handle's KeepBoth stores a fenced turn", "kept branches", true, "fence"},
	{noLook, "a request in doubt is sent again without a look", "a doubt, settled", true, "I2"},
	{newIDs, "a request in doubt is sent again with new ids", "a doubt, settled", true, "I"},
	{otherHead, "a request in doubt is sent again under another head", "a doubt, settled", true, "lost update"},
	{halfIsAll, "half a request counts as all of it", "kept turns, settled", false, "Settle"},
	{halfIsNothing, "half a request counts as nothing", "a doubt, settled", false, "I2"},
	{keptAloneCounts, "a kept line alone counts", "kept turns, settled", false, "Settle"},
	{keyLookedUpOnce, "a key is looked up once", "keys", true, "a turn was refused"},
	{digestWithoutDrafts, "the digest of a turn does not cover its drafts", "keys", true, "nil, and"},
	{
		doubtsDraftsForgotten, "a doubt's drafts are forgotten with it", "a doubt, another call, a retry", true,
		"a turn that is sent again",
	},
	{existsBeforeKey, "a creation is refused before its key is looked up", "creation", true, "a turn was"},
	{idsAskedOnce, "known ids are looked up once", "known ids", true, "an entry"},
	{answerUnconfirmed, "an answer from the history is not confirmed", "power, checkpoints, close", false, "I1"},
	{idleOnOldState, "nothing to do is decided on an old state", "annotations and turns", true, "nothing to do"},
	{doubtStaysOwn, "after Reload a doubt is still the handle's own", "a doubt, forgotten", true, "lost update"},
	{discardWithoutJudgement, "after Discard the tail is not judged", "a doubt, forgotten", false, "I"},
	{settleForgets, "Settle returns nil for what another call ended", "a doubt, settled", true, "Settle"},
	{refusedDropsDrafts, "a refused turn drops its drafts", "drafts", true, "not stored"},
	{refusedReordersDrafts, "a refused turn reorders its drafts", "drafts", true, "not stored"},
	{baseMovesBuffer, "a turn with Base moves the view under a buffer", "turns of two callers", true, "lost update"},
	{fromTakesDrafts, "a turn with From takes drafts", "moves", true, "drafts"},
	{noteLendsBase, "the receipt of a stale annotation serves as a fresh base", "annotations", true, "lost update"},
	{cancelKeepsLock, "a cancelled caller keeps the lock", "waiting and cancelled", true, "the lock"},
	{lockFreedEarly, "the lock is free before the call returned", "waiting and cancelled", false, "I2"},
	{hookUnderLock, "a hook runs under the lock", "waiting and cancelled", true, "the lock"},
	{closeSendsDoubt, "Close sends a doubt", "waiting and cancelled", true, "Close"},
	{closeUnconfirmed, "Close publishes what is not confirmed", "power, checkpoints, close", false, "I13"},
	{createAlone, "create is sent without its turn", "creation", false, "a session without"},
	{
		oldLifeGoesOn, "a writer of a deleted session writes to the next one", "a deleted id, used again", true,
		"a writer of a deleted session",
	},
	{restateAsPatch, "the line after a kept one carries a patch", "kept turns", true, "I10"},
}

func turnMutants() (rows []row) {
	for _, x := range mutants {
		for i := range scenarios {
			if scenarios[i].name == x.scenario {
				m := scenarios[i].model(x.replace)
				m.without = x.without
				rows = append(rows, turning("turn: "+x.name, proof.Quick, m, x.wrong))
			}
		}
	}
	return rows
}
