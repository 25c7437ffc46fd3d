// Package message reads messages of models in any provider's shape.
//
// It returns what people look at (Parse: text, calls with their arguments and results, thinking, images, documents)
// and what is recorded beside the words: the model, the usage, the reasoning. There is one table of it, so that every
// sum, view and export finds the same. transcript.Inspect returns what a message is in the conversation.
//
// It is pure and never fails on what it reads: a field of another type counts as absent.
package message

import (
	"math"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// MaxTokens bounds what is counted: 2^53, beyond which programs of JavaScript do not count. More is no count, and sums
// end there.
const MaxTokens = 1 << 53

// Usage is what a message says was counted, in tokens, none below 0 or beyond MaxTokens. What is not said is 0.
type Usage struct {
	Input      int64 // without what came from a cache or went to one
	Output     int64 // with what was thought
	CacheRead  int64
	CacheWrite int64
	Hour       int64  // of CacheWrite: what is kept for an hour
	Reasoning  int64  // of Output
	Total      int64  // as it is said; where it is not, the sum
	Cost       []byte // a number above 0, in the currency of the caller that wrote it; nil = not said
	Raw        []byte // the object that says all this; nil = there is none
}

// Nothing reports that nothing was counted. Programs of pi's family write such usages where no provider said one.
func (u Usage) Nothing() bool {
	return u.Input|u.Output|u.CacheRead|u.CacheWrite|u.Reasoning|u.Total == 0 && u.Cost == nil
}

// UsageOf reads the usage of a message, or of another object that has one. Of several the first counts that counts
// something.
func UsageOf(message []byte) Usage {
	var vals [len(bearers)][]byte
	for m := rawjson.Walk(message); m.Closing == '}' && m.Next(); {
		for i, name := range bearers {
			if string(m.Key) == name {
				vals[i] = m.Val
			}
		}
	}
	var first Usage
	for _, val := range vals {
		if len(val) == 0 || val[0] != '{' {
			continue
		}
		u := parse(val)
		if !u.Nothing() {
			return u
		}
		if first.Raw == nil {
			first = u
		}
	}
	return first
}

// counter holds the numbers of a usage while it is read.
type counter struct {
	n    [kinds]int64
	rank [kinds]uint8 // of the name that it was found by, from 1 on; 0 = it was not
}

func (c *counter) take(p place, val []byte) {
	if r := c.rank[p.kind]; r != 0 && r < p.rank+1 {
		return
	}
	if n, ok := Count(val); ok {
		c.n[p.kind], c.rank[p.kind] = n, p.rank+1
	}
}

func (c *counter) has(k kind) bool { return c.rank[k] != 0 }

// parse reads a usage in one walk.
func parse(val []byte) Usage {
	var c counter
	var cost, other []byte
	flat, deep := places()
	for m := rawjson.Walk(val); m.Next(); {
		if p, ok := flat[string(m.Key)]; ok {
			c.take(p, m.Val)
			continue
		}
		switch string(m.Key) {
		case "cost":
			if cost = m.Val; cost[0] == '{' {
				cost = rawjson.Field(cost, "total")
			}
			continue
		case "total_cost":
			other = m.Val
			continue
		}
		inner, ok := deep[string(m.Key)]
		for in := rawjson.Walk(m.Val); ok && in.Closing == '}' && in.Next(); {
			if p, ok := inner[string(in.Key)]; ok {
				c.take(p, in.Val)
			}
		}
	}
	u := c.usage()
	u.Raw = val
	for _, v := range [][]byte{cost, other} {
		if n, err := strconv.ParseFloat(string(v), 64); u.Cost == nil && rawjson.IsNumber(v) && err == nil && n > 0 {
			u.Cost = v
		}
	}
	return u
}

// usage returns the counts so that each token is in one of the four.
func (c *counter) usage() Usage {
	n := &c.n
	u := Usage{
		Input: n[input], Output: n[output], CacheRead: n[read], CacheWrite: n[write], Hour: n[hour],
		Reasoning: n[thought], Total: n[total],
	}
	if !c.has(output) {
		u.Output = sum(n[said], n[thought])
	}
	if !c.has(input) || names[input][c.rank[input]-1] != ownInput {
		if n[cached] > 0 {
			u.CacheRead, u.Input = n[cached], max(0, u.Input-n[cached])
		}
		if n[filled] > 0 {
			u.CacheWrite, u.Input = n[filled], max(0, u.Input-n[filled])
		}
		u.Input = sum(u.Input, n[used])
	}
	if u.Total == 0 {
		u.Total = sum(u.Input, u.Output, u.CacheRead, u.CacheWrite)
	}
	return u
}

func sum(list ...int64) (all int64) {
	for _, n := range list {
		all = min(MaxTokens, all+n)
	}
	return all
}

// Count reads a count of tokens. Programs that have no whole numbers write 10.0 or 1e3; what is after the point counts
// not. false: it is none, or one below 0 or beyond MaxTokens.
func Count(val []byte) (int64, bool) {
	if !rawjson.IsNumber(val) {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(val), 10, 64); err == nil {
		return n, n >= 0 && n <= MaxTokens
	}
	f, err := strconv.ParseFloat(string(val), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > MaxTokens {
		return 0, false
	}
	return int64(f), true
}
