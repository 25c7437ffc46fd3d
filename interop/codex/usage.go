package codex

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// tokenUsage is a number of tokens by kind. Input includes CacheRead and CacheWritten; Output includes Reasoning.
type tokenUsage struct{ Input, CacheRead, CacheWritten, Output, Reasoning int64 }

// readTokenUsage returns the counts in a JSON object of Codex. A field that is missing, negative, above 2^50 or not a
// number is 0.
func readTokenUsage(val []byte) (u tokenUsage) {
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); {
		var to *int64
		switch string(m.Key) {
		case "input_tokens":
			to = &u.Input
		case "cached_input_tokens":
			to = &u.CacheRead
		case "cache_write_input_tokens": // since 0.148
			to = &u.CacheWritten
		case "output_tokens":
			to = &u.Output
		case "reasoning_output_tokens":
			to = &u.Reasoning
		default:
			continue
		}
		if n, err := strconv.ParseInt(string(m.Val), 10, 64); err == nil && n >= 0 && n <= 1<<50 {
			*to = n
		}
	}
	return u
}

// Plus returns the sum of u and o, or u if a count of u is above 2^60.
func (u tokenUsage) Plus(o tokenUsage) tokenUsage {
	const most = 1 << 60
	if max(u.Input, u.Output, u.CacheRead, u.CacheWritten, u.Reasoning) > most {
		return u
	}
	return tokenUsage{
		u.Input + o.Input, u.CacheRead + o.CacheRead, u.CacheWritten + o.CacheWritten,
		u.Output + o.Output, u.Reasoning + o.Reasoning,
	}
}

// Minus returns u - o. It returns false if a field of the difference is negative.
func (u tokenUsage) Minus(o tokenUsage) (tokenUsage, bool) {
	d := tokenUsage{
		u.Input - o.Input, u.CacheRead - o.CacheRead, u.CacheWritten - o.CacheWritten,
		u.Output - o.Output, u.Reasoning - o.Reasoning,
	}
	return d, min(d.Input, d.CacheRead, d.CacheWritten, d.Output, d.Reasoning) >= 0
}

// Append appends u as JSON with pi's fields to dst. In these, input excludes the tokens read from and written to the
// cache. All costs are 0.
func (u tokenUsage) Append(dst []byte) []byte {
	cached := min(u.CacheRead, u.Input)
	written := min(u.CacheWritten, u.Input-cached)
	dst = strconv.AppendInt(append(dst, `{"input":`...), u.Input-cached-written, 10)
	dst = strconv.AppendInt(append(dst, `,"output":`...), u.Output, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheRead":`...), cached, 10)
	if u.Reasoning > 0 {
		dst = strconv.AppendInt(append(dst, `,"reasoning":`...), u.Reasoning, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"cacheWrite":`...), written, 10)
	dst = strconv.AppendInt(append(dst, `,"totalTokens":`...), u.Input+u.Output, 10)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}
