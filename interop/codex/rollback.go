package codex

// turnPlace is where a conversation continues: the entry on which the next one hangs, and what is in force there.
type turnPlace struct{ Tip, Model, Effort string }

// askedMessage is a message with which the model was made to answer.
type askedMessage struct {
	turnPlace
	fresh bool // neither the model nor a tool has said anything since the compaction before it
}

// compactionFold is a compaction that goes with its turn.
type compactionFold struct {
	turnPlace                // where it hangs
	before    []askedMessage // the messages that it took the place of
	leads     bool           // likewise
	made      int            // messages of the history that it brought
	turn      int            // the one in which it was made
}

// turnTracker finds where a rollout continues when turns of it are taken back. The zero value is the beginning of a
// conversation.
//
// Codex takes back messages, not turns: the last ones with which the user, or another agent, made the model answer,
// and what it said itself right before the first of them. It does not go back past the first message that is left
// of the conversation. A compaction counts for what follows it, but not once the turn in which it was made is taken
// back: the history that it replaced is in force again then. Which turn that is, files say since 2026; in an older
// one a compaction stays.
//
// Bounds (I15): of each message some 100 bytes are held, of each turn a byte, and at most 160,000 bytes of what the
// user said.
type turnTracker struct {
	asked []askedMessage   // since the last compaction, and those that it brought
	folds []compactionFold // that may go
	turns []bool           // that the file names: a message asks in it
	quiet turnPlace        // where what Codex says by itself began, if it did
	still bool             // it did
	fresh bool
	leads bool // the last compaction's summary is a message to the model as those of the user are
	words userTexts
}

// from returns where to go back to for what is said now: to before what Codex said right before it, but for the first
// message, before which that stays.
func (l *turnTracker) from(at turnPlace) turnPlace {
	if l.still && (l.leads || len(l.asked) > 0) {
		return l.quiet
	}
	return at
}

// Begin notes that a turn begins, which the file names.
func (l *turnTracker) Begin(at turnPlace) {
	l.turns = append(l.turns, false)
	l.Tell(at)
}

// Tell notes that Codex says something by itself, or begins a turn.
func (l *turnTracker) Tell(at turnPlace) {
	if !l.still {
		l.quiet, l.still = at, true
	}
}

// Note notes that Codex, or an agent for it, says something that stays when the turn is taken back.
func (l *turnTracker) Note() { l.still = false }

// Say notes that something else is said.
func (l *turnTracker) Say() { l.still, l.fresh = false, false }

// Ask notes a message that makes the model answer; text is what the user said, "" = another agent did.
func (l *turnTracker) Ask(at turnPlace, text string) {
	l.asked = append(l.asked, askedMessage{l.from(at), l.fresh})
	if n := len(l.turns); n > 0 {
		l.turns[n-1] = true
	}
	l.words.add(len(l.asked), text)
	l.Say()
}

// Fold notes a compaction that brings a history of its own: calls of Keep follow, and then Folded. stays: it does
// not go with its turn.
func (l *turnTracker) Fold(at turnPlace, stays bool) {
	if n := len(l.turns); n > 0 && !stays {
		l.folds = append(l.folds, compactionFold{turnPlace: l.from(at), before: l.asked, leads: l.leads, turn: n - 1})
	} else {
		l.folds = nil
	}
	l.asked, l.words, l.leads = nil, userTexts{}, false
	l.Say()
}

// Keep notes a message of the history that a compaction brings.
func (l *turnTracker) Keep(at turnPlace, text string) {
	l.asked = append(l.asked, askedMessage{turnPlace: at})
	if n := len(l.folds); n > 0 {
		l.folds[n-1].made++
	}
	l.words.add(len(l.asked), text)
	l.Say()
}

// Folded notes the end of the history that a compaction brings; leads: its summary is one of its messages.
func (l *turnTracker) Folded(leads bool) { l.still, l.fresh, l.leads = false, true, leads }

// Words returns what the user said, the newest 80,000 bytes of it: what is left of the history where a compaction
// brings none.
func (l *turnTracker) Words() []string { return l.words.newest() }

// Back takes back the last n messages and returns where the conversation continues; false: there is
// none to take back.
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

// unfold takes back the turns in which the last n messages stand, and their compactions, of which it returns
// where the first one hangs.
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
