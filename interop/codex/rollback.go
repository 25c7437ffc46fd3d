package codex

// turnPlace is a position of the conversation: the parent of the next entry, and the model and effort in force.
type turnPlace struct{ Tip, Model, Effort string }

// askedMessage is a message that made the model answer.
type askedMessage struct {
	turnPlace
	fresh bool // no output of the model or a tool since the last compaction
}

// compactionFold is a compaction that a rollback of its turn removes.
type compactionFold struct {
	turnPlace                // position before the compaction
	before    []askedMessage // asked before the compaction
	leads     bool           // leads before the compaction
	made      int            // number of messages in the history of the compaction
	turn      int            // index of the turn in which it was made
}

// turnTracker computes where a rollout continues after a rollback. The zero value is the beginning of a conversation.
//
// Codex removes messages, not turns: the last ones of the user, or of another agent, that made the model answer, and
// its own messages right before the first of them. It does not go back past the first remaining message. A rollback of
// the turn in which a compaction was made removes the compaction: the history before it is in force again. Files name
// that turn since 2026; in an older file a compaction stays.
//
// Bounds (I15): about 100 bytes per message, one byte per turn, and at most 160,000 bytes of the user's text.
type turnTracker struct {
	asked []askedMessage   // since the last compaction, and those in its history
	folds []compactionFold // that a rollback can remove
	turns []bool           // that the file names; true = a message of it made the model answer
	quiet turnPlace        // position before the latest run of Codex's own messages
	still bool             // quiet is set
	fresh bool
	leads bool // the summary of the last compaction counts as a user message
	words userTexts
}

// from returns the position to which a rollback of the next message goes: before Codex's own messages right before it.
// Before the first message these stay.
func (l *turnTracker) from(at turnPlace) turnPlace {
	if l.still && (l.leads || len(l.asked) > 0) {
		return l.quiet
	}
	return at
}

// Begin records the beginning of a turn that the file names.
func (l *turnTracker) Begin(at turnPlace) {
	l.turns = append(l.turns, false)
	l.Tell(at)
}

// Tell records a message that Codex itself wrote, or the beginning of a turn.
func (l *turnTracker) Tell(at turnPlace) {
	if !l.still {
		l.quiet, l.still = at, true
	}
}

// Note records a message that stays after a rollback of its turn.
func (l *turnTracker) Note() { l.still = false }

// Say records any other output.
func (l *turnTracker) Say() { l.still, l.fresh = false, false }

// Ask records a message that makes the model answer. text is the user's text; "" = another agent wrote it.
func (l *turnTracker) Ask(at turnPlace, text string) {
	l.asked = append(l.asked, askedMessage{l.from(at), l.fresh})
	if n := len(l.turns); n > 0 {
		l.turns[n-1] = true
	}
	l.words.add(len(l.asked), text)
	l.Say()
}

// Fold records a compaction with a history of its own. Calls of Keep follow, then one of Folded. stays = a rollback
// does not remove the compaction.
func (l *turnTracker) Fold(at turnPlace, stays bool) {
	if n := len(l.turns); n > 0 && !stays {
		l.folds = append(l.folds, compactionFold{turnPlace: l.from(at), before: l.asked, leads: l.leads, turn: n - 1})
	} else {
		l.folds = nil
	}
	l.asked, l.words, l.leads = nil, userTexts{}, false
	l.Say()
}

// Keep records a message in the history of a compaction.
func (l *turnTracker) Keep(at turnPlace, text string) {
	l.asked = append(l.asked, askedMessage{turnPlace: at})
	if n := len(l.folds); n > 0 {
		l.folds[n-1].made++
	}
	l.words.add(len(l.asked), text)
	l.Say()
}

// Folded records the end of a compaction's history. leads = the summary is one of its messages.
func (l *turnTracker) Folded(leads bool) { l.still, l.fresh, l.leads = false, true, leads }

// Words returns the newest 80,000 bytes of the user's text: the rest of the history after a compaction without one.
func (l *turnTracker) Words() []string { return l.words.newest() }

// Back removes the last n messages and returns where the conversation continues, or false if there are no messages.
func (l *turnTracker) Back(n int) (turnPlace, bool) {
	to, ok := l.unfold(n)
	if at := max(len(l.asked)-n, 0); n > 0 && at < len(l.asked) {
		to, ok = l.asked[at].turnPlace, true
		l.asked = l.asked[:at]
		l.words.back(at)
	}
	if ok {
		l.Say()
	}
	return to, ok
}

// unfold removes the turns of the last n messages and their compactions. It returns the position before the first of
// these compactions.
func (l *turnTracker) unfold(n int) (to turnPlace, ok bool) {
	left := len(l.turns)
	for ; n > 0 && left > 0; left-- {
		if l.turns[left-1] {
			n--
		}
	}
	l.turns = l.turns[:left]
	first := len(l.folds)
	for first > 0 && l.folds[first-1].turn >= left {
		first--
	}
	if first == len(l.folds) {
		return to, false
	}
	gone := l.folds[first:]
	list := gone[0].before
	for i, f := range gone {
		behind := l.asked
		if i+1 < len(gone) {
			behind = gone[i+1].before
		}
		if behind = behind[min(f.made, len(behind)):]; len(behind) > 0 && behind[0].fresh {
			behind[0] = askedMessage{turnPlace: f.turnPlace}
		}
		list = append(list, behind...)
	}
	l.asked, l.folds, l.words, l.leads = list, l.folds[:first], userTexts{}, gone[0].leads
	return gone[0].turnPlace, true
}
