package codex

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Bounds of the places where a reader can resume.
const (
	placeEvery  = 16 << 10 // bytes of the file between two places
	maxResumed  = 1 << 20  // bytes from the place to the end of the file
	maxWaiting  = 64       // calls without an output
	textBytes   = 6        // length of a text's hash
	resumeState = 1        // version of the state
)

// textHash returns the hash of a text, which is the same in every process.
func textHash(text []byte) (sum uint64) {
	all := sha256.Sum256(text)
	for _, b := range all[:textBytes] {
		sum = sum<<8 | uint64(b)
	}
	return sum
}

// knownState is the state of a reader at a place in the file. It does not include what a rollback needs.
type knownState struct {
	Version  int               `json:"v"`
	ID       string            `json:"id"`
	Titled   bool              `json:"titled,omitempty"`
	Tip      string            `json:"tip"`
	Model    string            `json:"model,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Effort   string            `json:"effort,omitempty"`
	Agent    bool              `json:"agent,omitempty"`
	Paged    bool              `json:"paged,omitempty"`
	Last     time.Time         `json:"last"`
	Total    tokenUsage        `json:"total"`
	Counted  bool              `json:"counted,omitempty"`
	Before   bool              `json:"before,omitempty"`
	Turn     string            `json:"turn,omitempty"`
	Calls    map[string]string `json:"calls,omitempty"`
	Every    bool              `json:"every,omitempty"` // of typedFilter
	Events   bool              `json:"events,omitempty"`
	Loose    bool              `json:"loose,omitempty"`
	Heard    string            `json:"heard,omitempty"` // hashes of the last texts, oldest first
	Repeats  bool              `json:"repeats,omitempty"`
}

// restPlace is the start of a line before which nothing is pending.
type restPlace struct {
	interop.Mark
	knownState
	heard []uint64
}

// rest records the place of a line if nothing is pending before it.
func (r *Reader) rest(p *rolloutPiece) {
	if r.from.depth > 0 || p.Offset < r.resting.Offset+placeEvery && r.resting.Entry != "" || p.At.N > 0 ||
		p.Notes.any() || r.answer.open || r.costs.due.open || r.costs.due.late || r.costs.owed.known ||
		len(r.echoes.waiting) > 0 || len(r.typed.held) > 0 || len(r.calls) > maxWaiting {
		return
	}
	r.next = restPlace{
		Mark: interop.Mark{Offset: p.Offset, Line: int64(p.At.Line - 1)},
		knownState: knownState{
			Version: resumeState, ID: r.header.ID, Titled: r.header.Title != "", Tip: r.tip, Model: r.model,
			Provider: r.provider, Effort: r.effort, Agent: r.agent, Paged: r.paged, Last: r.last,
			Total: r.costs.total, Counted: r.costs.begun, Before: r.costs.before, Turn: r.costs.turn,
			Calls: maps.Clone(r.calls), Every: r.typed.every, Events: r.typed.events, Loose: r.typed.loose,
			Repeats: r.echoes.repeats,
		},
		heard: r.echoes.texts(),
	}
	r.untold = true
}

// texts returns the hashes of the last texts, oldest first.
func (e *echoFilter) texts() []uint64 {
	if e.n <= len(e.heard) {
		return slices.Clone(e.heard[:e.n])
	}
	at := e.n % len(e.heard)
	return slices.Concat(e.heard[at:], e.heard[:at])
}

// Mark returns the place where a reader of the grown file can resume.
func (r *Reader) Mark() *interop.Mark {
	p := &r.resting
	if p.Entry == "" || int64(r.noted) > p.Line || r.ends-p.Offset > maxResumed || r.in == nil || r.in.zst != nil {
		return nil
	}
	var heard []byte
	for _, sum := range p.heard {
		for i := range textBytes {
			heard = append(heard, byte(sum>>(8*(textBytes-1-i))))
		}
	}
	p.Heard = base64.StdEncoding.EncodeToString(heard)
	state, err := json.Marshal(p.knownState)
	if err != nil {
		return nil
	}
	m := p.Mark
	m.State = string(state)
	return &m
}

// resume restores the state of a mark.
func (r *Reader) resume() error {
	var s knownState
	err := json.Unmarshal([]byte(r.o.From.State), &s)
	heard, herr := base64.StdEncoding.DecodeString(s.Heard)
	if err != nil || herr != nil || s.Version != resumeState || len(heard) > textBytes*len(r.echoes.heard) {
		return fmt.Errorf("the state of another release: %w", interop.ErrWhole)
	}
	r.header = interop.Header{ID: s.ID, Raw: []byte("{}"), Version: 1}
	if s.Titled {
		r.header.Title = "known"
	}
	r.tip, r.model, r.provider, r.effort, r.agent, r.paged, r.last = s.Tip, s.Model, s.Provider, s.Effort, s.Agent,
		s.Paged, s.Last
	r.costs.total, r.costs.begun, r.costs.before, r.costs.turn = s.Total, s.Counted, s.Before, s.Turn
	if s.Calls != nil {
		r.calls = s.Calls
	}
	r.typed.begun, r.typed.every, r.typed.events, r.typed.loose = true, s.Every, s.Events, s.Loose
	for ; len(heard) > 0; heard = heard[textBytes:] {
		sum := uint64(0)
		for _, b := range heard[:textBytes] {
			sum = sum<<8 | uint64(b)
		}
		r.echoes.heard[r.echoes.n] = sum
		r.echoes.n++
	}
	r.echoes.repeats = s.Repeats
	r.s.Start(int(r.o.From.Line), r.o.From.Offset)
	r.traced = true
	r.from, r.feed = &part{ordinal: math.MaxUint64}, newPieceFeed(r.s, 0)
	return nil
}

// whole sets the error ErrWhole: the meaning of the line depends on earlier lines.
func (r *Reader) whole(a position) {
	if r.o.From != nil && r.unknown == nil {
		r.unknown = fmt.Errorf("%s: line %d: %w", r.src.Name, a.Line, interop.ErrWhole)
	}
}
