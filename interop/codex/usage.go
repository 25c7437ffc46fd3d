package codex

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// tokenUsage is a token count. In includes tokens read from and written to the cache; Out includes reasoning.
type tokenUsage struct{ In, Cached, Written, Out, Thought int64 }

// readTokenUsage parses a count; an invalid field is 0.
func readTokenUsage(val []byte) (u tokenUsage) {
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); {
		var to *int64
		switch string(m.Key) {
		case "input_tokens":
			to = &u.In
		case "cached_input_tokens":
			to = &u.Cached
		case "cache_write_input_tokens": // since 0.148
			to = &u.Written
		case "output_tokens":
			to = &u.Out
		case "reasoning_output_tokens":
			to = &u.Thought
		default:
			continue
		}
		if n, err := strconv.ParseInt(string(m.Val), 10, 64); err == nil && n >= 0 && n <= 1<<50 {
			*to = n
		}
	}
	return u
}

// Plus returns the sum. A count over 2^60 does not grow.
func (u tokenUsage) Plus(o tokenUsage) tokenUsage {
	const most = 1 << 60
	if max(u.In, u.Out, u.Cached, u.Written, u.Thought) > most {
		return u
	}
	return tokenUsage{u.In + o.In, u.Cached + o.Cached, u.Written + o.Written, u.Out + o.Out, u.Thought + o.Thought}
}

// Minus returns the difference, or false if a field of it is negative.
func (u tokenUsage) Minus(o tokenUsage) (tokenUsage, bool) {
	d := tokenUsage{u.In - o.In, u.Cached - o.Cached, u.Written - o.Written, u.Out - o.Out, u.Thought - o.Thought}
	return d, min(d.In, d.Cached, d.Written, d.Out, d.Thought) >= 0
}

// Append appends the count with pi's fields. Input excludes tokens read from or written to the cache.
func (u tokenUsage) Append(dst []byte) []byte {
	cached := min(u.Cached, u.In)
	written := min(u.Written, u.In-cached)
	dst = strconv.AppendInt(append(dst, `{"input":`...), u.In-cached-written, 10)
	dst = strconv.AppendInt(append(dst, `,"output":`...), u.Out, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheRead":`...), cached, 10)
	if u.Thought > 0 {
		dst = strconv.AppendInt(append(dst, `,"reasoning":`...), u.Thought, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"cacheWrite":`...), written, 10)
	dst = strconv.AppendInt(append(dst, `,"totalTokens":`...), u.In+u.Out, 10)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}
