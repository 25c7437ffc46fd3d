package manager

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// Usage is what answers of models used, in tokens. Input does not count what came from a cache or went to one.
type Usage struct {
	Answers    int     `json:"answers"` // how many there are; and what else has a usage of its own
	Input      int64   `json:"input"`
	Output     int64   `json:"output"` // reasoning included
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Reasoning  int64   `json:"reasoning"`
	Total      int64   `json:"total"`
	Cost       float64 `json:"cost"` // in the currency of the program that wrote it; 0 = unknown
}

// Add adds another usage.
func (u *Usage) Add(o Usage) {
	u.Answers += o.Answers
	u.Input += o.Input
	u.Output += o.Output
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.Reasoning += o.Reasoning
	u.Total += o.Total
	u.Cost += o.Cost
}

// UsageTotals are sums over entries.
type UsageTotals struct {
	Usage
	Entries int              `json:"entries"` // that were looked at
	Models  map[string]Usage `json:"models"`  // by "provider/id", "" = it is not said
}

// SumUsage adds up entries: those of a session, of a path, or of a branch, in any provider's shape. It keeps only
// numbers and names of each entry, and never fails on what it reads: a field of another type counts as absent.
func SumUsage(entries iter.Seq2[transcript.Entry, error]) (UsageTotals, error) {
	t := UsageTotals{Models: map[string]Usage{}}
	for e, err := range entries {
		if err != nil {
			return t, fmt.Errorf("sum the usage: %w", err)
		}
		t.Entries++
		u, model, ok := usageOf(e)
		if !ok {
			continue
		}
		t.Add(u)
		m := t.Models[model]
		m.Add(u)
		t.Models[model] = m
	}
	return t, nil
}

// UsageOf returns the usage of one entry: an answer of a model, with or without numbers, or a summary, a tool result
// or an entry of the ledger that has a usage. false: it has none.
func UsageOf(e transcript.Entry) (Usage, bool) {
	u, _, ok := usageOf(e)
	return u, ok
}

// usageBearer returns what may have a usage of its own: an entry, the message in it, or what an export made a custom
// entry of. nil = nothing has. answer: it is an answer of a model.
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

// usageField begins the names of all fields that hold a usage.
var usageField = []byte(`"usage`)

func usageOf(e transcript.Entry) (Usage, string, bool) {
	raw, answer := usageBearer(e)
	var c message.Usage
	if answer || bytes.Contains(raw, usageField) {
		c = message.UsageOf(raw)
	}
	if !answer && c.Nothing() {
		return Usage{}, "", false
	}
	cost, err := strconv.ParseFloat(string(c.Cost), 64)
	if err != nil {
		cost = 0 // it is not said
	}
	return Usage{
		Answers: 1, Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite,
		Reasoning: c.Reasoning, Total: c.Total, Cost: cost,
	}, message.Name(raw), true
}
