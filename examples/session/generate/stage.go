package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"
)

// What the session starts with.
const (
	cwd       = "/home/mara/src/tideline"
	sessionID = "019cadab-3a54-7c1e-9d42-6f0e8b7a51c3"
	seed      = 0x71DE11AE
)

var opening = time.Date(2026, time.March, 2, 9, 12, 4, 180e6, time.UTC)

// price of a model in dollars a million tokens: input, output, cache read, cache write.
var price = map[string][4]float64{
	"claude-sonnet-4-5": {3, 15, 0.3, 3.75},
	"claude-opus-4-5":   {5, 25, 0.5, 6.25},
}

// stage is the state of a play: where the next entry goes, and the project as it is.
type stage struct {
	out   bytes.Buffer
	ids   *rand.PCG
	used  map[string]bool
	now   time.Time
	files map[string]string
	saved map[string]map[string]string

	head            string
	parent          map[string]string
	tokens          map[string]int // of the context that ends at an entry
	marks           map[string]string
	provider, model string

	reply   []block // the assistant's message so far
	pending []toolResult
}

// Play returns the session file of a script.
func Play(script string) ([]byte, error) {
	steps, err := parse(script)
	if err != nil {
		return nil, err
	}
	s := &stage{
		ids: rand.NewPCG(seed, seed), used: map[string]bool{}, now: opening,
		files: map[string]string{}, saved: map[string]map[string]string{},
		parent: map[string]string{}, tokens: map[string]int{"": 2_150}, marks: map[string]string{},
	}
	s.write(header{Type: "session", Version: 3, ID: sessionID, Timestamp: stamp(s.now), Cwd: cwd})
	for _, st := range steps {
		if err := s.play(st); err != nil {
			return nil, fmt.Errorf("line %d: .%s %s: %w", st.line, st.verb, st.arg, err)
		}
	}
	s.flush("stop")
	return s.out.Bytes(), nil
}

func (s *stage) play(st step) error {
	switch st.verb {
	case "think", "say", "then":
		if len(s.pending) > 0 {
			s.flush("toolUse")
		}
		s.speak(st)
		return nil
	case "read", "grep", "write", "edit", "bash", "bash!":
		return s.call(st)
	case "stop":
		s.flush("aborted")
		return nil
	}
	s.flush("stop")
	switch st.verb {
	case "file":
		s.files[st.arg] = st.body + "\n"
	case "save":
		s.saved[st.arg] = maps.Clone(s.files)
	case "load":
		s.files = maps.Clone(s.saved[st.arg])
	case "mark":
		s.marks[st.arg] = s.head
	case "pause":
		d, err := time.ParseDuration(st.arg)
		s.now = s.now.Add(d)
		return err
	case "at", "before":
		return s.move(st)
	case "user", "shell":
		s.fromUser(st)
	default:
		return s.annotate(st)
	}
	return nil
}

func (s *stage) speak(st step) {
	switch st.verb {
	case "think":
		s.reply = append(s.reply, block{Type: "thinking", Thinking: st.body})
	case "say":
		s.reply = append(s.reply, block{Type: "text", Text: st.body})
	}
}

func (s *stage) move(st step) error {
	target, ok := s.marks[st.arg]
	if !ok {
		return errors.New("no such mark")
	}
	if st.verb == "before" {
		target = s.parent[target]
	}
	s.head = target
	return nil
}

func (s *stage) fromUser(st step) {
	s.wait(25*time.Second, 4*time.Minute)
	if st.verb == "shell" {
		s.message(bashExecution{Role: "bashExecution", Command: st.arg, Output: st.body, Timestamp: s.now.UnixMilli()})
		return
	}
	s.message(userMessage{Role: "user", Content: textBlocks(st.body), Timestamp: s.now.UnixMilli()})
}

// annotate plays the entries that are no messages.
func (s *stage) annotate(st step) error {
	first, rest, _ := strings.Cut(st.arg, " ")
	target, marked := s.marks[first]
	switch st.verb {
	case "label", "compact", "summary":
		if !marked {
			return errors.New("no such mark")
		}
	}
	s.wait(time.Second, 5*time.Second)
	switch st.verb {
	case "model":
		s.provider, s.model = first, rest
		s.add(func(b base) any { return modelChange{b, first, rest} }, "model_change")
	case "thinking":
		s.add(func(b base) any { return thinkingChange{b, first} }, "thinking_level_change")
	case "title":
		s.add(func(b base) any { return sessionInfo{b, st.arg} }, "session_info")
	case "label":
		s.add(func(b base) any { return label{b, target, rest} }, "label")
	case "note":
		s.add(func(b base) any { return customMessage{b, first, st.body, true} }, "custom_message")
	case "summary":
		s.add(func(b base) any { return branchSummary{b, target, st.body} }, "branch_summary")
	case "compact":
		before := s.tokens[s.head]
		s.add(func(b base) any { return compaction{b, st.body, target, before} }, "compaction")
		s.tokens[s.head] = before - s.tokens[target] + s.tokens[""] + len(st.body)/4
	default:
		return errors.New("no such direction")
	}
	return nil
}

// flush ends the assistant's message, if there is one, and adds the results of its calls.
func (s *stage) flush(reason string) {
	if len(s.reply) == 0 {
		return
	}
	if len(s.pending) > 0 && reason == "stop" {
		reason = "toolUse"
	}
	s.wait(2*time.Second, 19*time.Second)
	m := assistantMessage{
		Role: "assistant", Content: s.reply, API: "anthropic-messages", Provider: s.provider, Model: s.model,
		Usage: s.usage(), StopReason: reason, Timestamp: s.now.UnixMilli(),
	}
	if reason == "aborted" {
		m.ErrorMessage = "Request was aborted"
	}
	s.message(m)
	for _, r := range s.pending {
		s.wait(20*time.Millisecond, 2*time.Second)
		r.Timestamp = s.now.UnixMilli()
		s.message(r)
	}
	s.reply, s.pending = nil, nil
}

// usage estimates four bytes a token; what the last reply saw comes from the cache.
func (s *stage) usage() usage {
	seen := s.head
	for seen != "" && s.tokens[seen] == s.tokens[s.head] {
		seen = s.parent[seen]
	}
	u := usage{Input: 4, CacheRead: s.tokens[seen], CacheWrite: s.tokens[s.head] - s.tokens[seen], Output: size(s.reply) / 4}
	u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	p := price[s.model]
	u.Cost = cost{
		Input: dollars(u.Input, p[0]), Output: dollars(u.Output, p[1]),
		CacheRead: dollars(u.CacheRead, p[2]), CacheWrite: dollars(u.CacheWrite, p[3]),
	}
	u.Cost.Total = dollars(1_000_000, u.Cost.Input+u.Cost.Output+u.Cost.CacheRead+u.Cost.CacheWrite)
	return u
}

// dollars rounds to a millionth, so that the text of a sum does not depend on its order.
func dollars(tokens int, perMillion float64) float64 {
	return float64(int64(float64(float64(tokens)*perMillion)+0.5)) / 1e6
}

func (s *stage) message(m any) {
	s.add(func(b base) any { return messageEntry{b, m} }, "message")
	s.tokens[s.head] += size(m) / 4
}

// add writes an entry below the head and makes it the head.
func (s *stage) add(shape func(base) any, typ string) {
	b := base{Type: typ, ID: s.newID(), Timestamp: stamp(s.now)}
	if s.head != "" {
		parent := s.head
		b.ParentID = &parent
	}
	s.parent[b.ID], s.tokens[b.ID] = s.head, s.tokens[s.head]
	s.head = b.ID
	s.write(shape(b))
}

func (s *stage) newID() string {
	for {
		id := fmt.Sprintf("%08x", uint32(s.ids.Uint64()))
		if !s.used[id] {
			s.used[id] = true
			return id
		}
	}
}

// wait lets a time pass that lies between the two.
func (s *stage) wait(least, most time.Duration) {
	span := uint64((most - least) / time.Millisecond)
	s.now = s.now.Add(least + time.Duration(s.ids.Uint64()%span)*time.Millisecond)
}

func (s *stage) write(v any) {
	enc := json.NewEncoder(&s.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the shapes hold nothing that cannot be encoded
	}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }

func size(v any) int {
	p, err := json.Marshal(v)
	if err != nil {
		panic(err) // as above
	}
	return len(p)
}
