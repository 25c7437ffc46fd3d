package manager

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Usage is the usage of model answers, in tokens. Input excludes tokens that were read from or written to a cache.
type Usage struct {
	Answers    int     `json:"answers"` // number of answers and of other entries with a usage
	Input      int64   `json:"input"`
	Output     int64   `json:"output"` // reasoning included
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Reasoning  int64   `json:"reasoning"`
	Total      int64   `json:"total"`
	Cost       float64 `json:"cost"` // in the currency of the program that wrote it; 0 = unknown
}

// Add adds another usage.
func (u *Usage) Add(o Usage) { u.add(o, 1) }

// add adds another usage n times: 1, or -1 to take it away.
func (u *Usage) add(o Usage, n int) {
	u.Answers += n * o.Answers
	u.Input += int64(n) * o.Input
	u.Output += int64(n) * o.Output
	u.CacheRead += int64(n) * o.CacheRead
	u.CacheWrite += int64(n) * o.CacheWrite
	u.Reasoning += int64(n) * o.Reasoning
	u.Total += int64(n) * o.Total
	u.Cost += float64(n) * o.Cost
}

// UsageTotals are sums over entries. Each response of a provider is counted once, in Usage or in Inherited: if several
// entries hold one response the most complete one counts.
type UsageTotals struct {
	Usage
	Inherited Usage            `json:"inherited"` // of responses that other sessions received
	Entries   int              `json:"entries"`   // examined entries
	Failed    int              `json:"failed"`    // failed answers and results of failed calls
	Models    map[string]Usage `json:"models"`    // parts of Usage by "provider/id", "" = unknown
	Days      map[string]Usage `json:"days"`      // parts of Usage by UTC date of the answer, as 2006-01-02
}

// UsageSum adds up the usage of entries one by one. The zero value is ready.
type UsageSum struct{ l ledger }

// Add adds an entry.
func (s *UsageSum) Add(e transcript.Entry) { s.l.read(e) }

// Totals returns the sums of the entries that were added.
func (s *UsageSum) Totals() UsageTotals { return s.l.totals(noneInherited) }

// SumUsage adds up the usage of entries, of a session, a path or a branch, in any provider's format. It keeps about 200
// bytes of each answer, and never fails on a malformed field: a field of another type counts as absent. The entries of
// one session do not show which answers were copied from other sessions, unless an import marked them: see UsageReader.
func SumUsage(entries iter.Seq2[transcript.Entry, error]) (UsageTotals, error) {
	l, err := readLedger(entries)
	return l.totals(noneInherited), err
}

// UsageOf returns the usage of one entry: an answer of a model, with or without numbers, or a summary, a tool result or
// a ledger entry with a usage. ok is false for other entries. Several entries may hold one response: SumUsage counts it
// once.
func UsageOf(e transcript.Entry) (Usage, bool) {
	r, ok := responseOf(e)
	return r.Usage, ok
}

// response is the usage of one response of a provider. key is a hash of its identity. like is a hash of its time and
// tokens, which identify a copy that another program wrote; 0 = it has no time.
type response struct {
	Usage
	key, like uint64
	inherited bool
	model     string
	time      time.Time
}

// ledger holds the responses of some entries, each once.
type ledger struct {
	entries int
	failed  int
	list    []response
	at      map[uint64]int
	models  map[string]string // each name once
}

// clone returns a copy that can be added to.
func (l *ledger) clone() *ledger {
	return &ledger{
		entries: l.entries, failed: l.failed, list: slices.Clone(l.list),
		at: maps.Clone(l.at), models: maps.Clone(l.models),
	}
}

// readLedger reads entries. With an error it returns those before.
func readLedger(entries iter.Seq2[transcript.Entry, error]) (*ledger, error) {
	l := &ledger{}
	for e, err := range entries {
		if err != nil {
			return l, fmt.Errorf("sum the usage: %w", err)
		}
		l.read(e)
	}
	return l, nil
}

// read takes an entry.
func (l *ledger) read(e transcript.Entry) {
	l.entries++
	if hasFailed(e) {
		l.failed++
	}
	if r, ok := responseOf(e); ok {
		l.add(r)
	}
}

// add adds a report of a response.
func (l *ledger) add(r response) {
	if name, ok := l.models[r.model]; ok {
		r.model = name
	} else {
		if l.models == nil {
			l.models = map[string]string{}
		}
		l.models[r.model] = r.model
	}
	i, ok := l.at[r.key]
	if !ok {
		if l.at == nil {
			l.at = map[uint64]int{}
		}
		l.at[r.key] = len(l.list)
		l.list = append(l.list, r)
		return
	}
	old := &l.list[i]
	old.inherited = old.inherited && r.inherited
	if !old.exceeds(r.Usage) {
		old.Usage, old.model = r.Usage, r.model
	}
}

// exceeds reports whether u is a more complete report of a response than o.
func (u Usage) exceeds(o Usage) bool {
	return u.Total > o.Total || u.Total == o.Total && u.Cost > o.Cost
}

// during reports whether a response may have been received between two times.
func (l *ledger) during(from, to time.Time) bool {
	return slices.ContainsFunc(l.list, func(r response) bool {
		return r.time.IsZero() || !r.time.Before(from) && !r.time.After(to)
	})
}

// inheritance returns the usage of a response that other sessions report; false = none has it.
type inheritance func(r response) (Usage, bool)

func noneInherited(response) (Usage, bool) { return Usage{}, false }

// parts divides the usage of a response into that of the session and that of others.
func (r response) parts(inherited inheritance) (own, copied Usage) {
	if r.inherited {
		return Usage{}, r.Usage
	}
	had, ok := inherited(r)
	switch {
	case !ok:
		return r.Usage, Usage{}
	case !r.exceeds(had):
		return Usage{}, r.Usage
	}
	own = r.Usage
	own.add(had, -1)
	return own, had
}

// own returns the session's part of a response.
func (l *ledger) own(key uint64, inherited inheritance) (own Usage) {
	if i, ok := l.at[key]; ok {
		own, _ = l.list[i].parts(inherited)
	}
	return own
}

// totals returns the sums.
func (l *ledger) totals(inherited inheritance) UsageTotals {
	t := UsageTotals{Entries: l.entries, Failed: l.failed, Models: map[string]Usage{}, Days: map[string]Usage{}}
	models, days := map[string]*Usage{}, map[int64]*Usage{} // days since 1970
	for _, r := range l.list {
		own, copied := r.parts(inherited)
		t.Inherited.Add(copied)
		if own == (Usage{}) {
			continue
		}
		t.Add(own)
		addTo(models, r.model, own)
		if !r.time.IsZero() {
			day := r.time.Unix() / secondsOfDay
			if r.time.Unix() < day*secondsOfDay {
				day-- // before 1970
			}
			addTo(days, day, own)
		}
	}
	for name, u := range models {
		t.Models[name] = *u
	}
	for day, u := range days {
		t.Days[time.Unix(day*secondsOfDay, 0).UTC().Format(time.DateOnly)] = *u
	}
	return t
}

const secondsOfDay = 24 * 60 * 60

func addTo[K comparable](sums map[K]*Usage, key K, u Usage) {
	sum := sums[key]
	if sum == nil {
		sum = &Usage{}
		sums[key] = sum
	}
	sum.Add(u)
}

// usageBearer returns the JSON object that may have a usage: an entry, its message, or the object that an export stored
// in a custom entry; nil = none. answer: it is an answer of a model.
func usageBearer(e transcript.Entry) (raw []byte, answer bool) {
	if e.Type == "message" {
		m, _ := e.Message()
		return m.Raw, message.ByModel(m.Role, m.Raw)
	}
	if !bytes.Contains(e.Raw, usageField) {
		return nil, false
	}
	typ, raw := e.Type, e.Raw
	if typ == "custom" {
		typ, raw = message.KeptEntry(raw)
	}
	switch typ {
	case "usage", "model_usage", "compaction", "branch_summary", "session_summary":
		return raw, false
	case "custom_message":
		return message.KeptMessage(raw), false
	}
	return nil, false
}

// usageField is the prefix of the names of all usage fields.
var usageField = []byte(`"usage`)

// requestField is in lines of Claude Code, which have the request id outside the message.
var requestField = []byte(`"requestId"`)

// uniqueID is the minimum length in bytes of a response id that counts as unique: those of Anthropic, OpenAI, Google
// and OpenRouter are longer. With a shorter id only entries with the same input belong to one response.
const uniqueID = 20

// responseSeed is the seed of the keys of responses, which are not stored.
var responseSeed = maphash.MakeSeed()

// failedField is the suffix of the names of fields that mark a failed result; it also occurs in many errors.
var failedField = []byte(`rror"`)

// hasFailed reports whether an entry is an answer that ended in an error, was refused or aborted, or contains the
// result of a failed call, like transcript.Node.Failed.
func hasFailed(e transcript.Entry) bool {
	if e.Type != "message" {
		return false
	}
	m, _ := e.Message()
	if !message.ByModel(m.Role, m.Raw) && !bytes.Contains(m.Raw, failedField) {
		return false
	}
	var blocks message.Cursor
	if message.Scan(m.Raw, &blocks).Failed {
		return true
	}
	for blocks.Next() {
		if blocks.Block.Failed {
			return true
		}
	}
	return false
}

// responseOf returns the response that an entry reports; ok is false if there is none.
func responseOf(e transcript.Entry) (response, bool) {
	raw, answer := usageBearer(e)
	var c message.Usage
	if answer || bytes.Contains(raw, usageField) {
		c = message.UsageOf(raw)
	}
	if !answer && c.Nothing() {
		return response{}, false
	}
	cost, err := strconv.ParseFloat(string(c.Cost), 64)
	if err != nil {
		cost = 0 // unknown
	}
	of := message.ResponseOf(raw)
	if of.ID == "" && bytes.Contains(e.Raw, requestField) {
		of.ID = rawjson.Text(rawjson.Field(rawjson.Field(e.Raw, "claudeCode"), "requestId"))
	}
	switch {
	case of.ID == "": // copies of the entry have its id and time
		of.ID = "entry:" + e.ID + ":" + e.Time.UTC().Format(time.RFC3339Nano) + ":" + string(c.Raw)
	case len(of.ID) < uniqueID: // local servers repeat ids such as chatcmpl-613
		of.ID = fmt.Sprint(of.ID, ":", c.Input, ":", c.CacheRead, ":", c.CacheWrite)
	}
	r := response{
		Usage: Usage{
			Answers: 1, Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite,
			Reasoning: c.Reasoning, Total: c.Total, Cost: cost,
		},
		key: maphash.String(responseSeed, of.ID), inherited: of.Inherited, model: message.Name(raw), time: e.Time,
	}
	if !r.time.IsZero() { // programs differ in which part of the input they report as cached
		r.like = maphash.Comparable(responseSeed, [...]int64{
			r.time.UnixMilli(), r.Input + r.CacheRead + r.CacheWrite, r.Output,
		})
	}
	return r, true
}
