package message

import (
	"math"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// MaxTokens bounds a count: 2^53, the limit of integers in JavaScript. A larger number is not a count, and sums stop
// there.
const MaxTokens = 1 << 53

// Usage is the token counts of a message, none below 0 or beyond MaxTokens. A missing count is 0.
type Usage struct {
	Input      int64 // without tokens read from or written to a cache
	Output     int64 // including thinking
	CacheRead  int64
	CacheWrite int64
	Hour       int64  // of CacheWrite: tokens kept for an hour
	Reasoning  int64  // of Output
	Total      int64  // as reported; if missing, the sum
	Cost       []byte // a number above 0, in the currency of the program that wrote it; nil = missing
	Raw        []byte // the JSON object of the usage; nil = none
}

// Nothing reports whether all counts are 0. pi and related programs write such usages if the provider reported none.
func (u Usage) Nothing() bool {
	return u.Input|u.Output|u.CacheRead|u.CacheWrite|u.Reasoning|u.Total == 0 && u.Cost == nil
}

// UsageOf reads the usage of a message, or of another object that has one. Of several the first with a count above 0 is
// used.
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
	rank [kinds]uint8 // of the name by which it was found, from 1; 0 = not found
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

// parse reads a usage in one pass.
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

// usage returns the counts with each token in exactly one of the four.
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

// Count reads a count of tokens. Programs without integers write 10.0 or 1e3; the fraction is dropped. ok is false if
// it is not a number, below 0 or beyond MaxTokens.
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
