package codex

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// tokenUsage is what was counted of answers, in tokens. In counts what came from the cache too, Out what was thought.
type tokenUsage struct{ In, Cached, Out, Thought int64 }

// readTokenUsage reads a count; a field that is none is 0.
func readTokenUsage(val []byte) (u tokenUsage) {
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); {
		var to *int64
		switch string(m.Key) {
		case "input_tokens":
			to = &u.In
		case "cached_input_tokens":
			to = &u.Cached
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

// Plus returns a sum; over 2^60 it stays as it is.
func (u tokenUsage) Plus(o tokenUsage) tokenUsage {
	const most = 1 << 60
	if u.In > most || u.Out > most || u.Cached > most || u.Thought > most {
		return u
	}
	return tokenUsage{u.In + o.In, u.Cached + o.Cached, u.Out + o.Out, u.Thought + o.Thought}
}

// Minus returns what there is more than in another count; false: of something there is less.
func (u tokenUsage) Minus(o tokenUsage) (tokenUsage, bool) {
	d := tokenUsage{u.In - o.In, u.Cached - o.Cached, u.Out - o.Out, u.Thought - o.Thought}
	return d, d.In >= 0 && d.Cached >= 0 && d.Out >= 0 && d.Thought >= 0
}

// Append appends it in pi's words: input without what came from the cache.
func (u tokenUsage) Append(dst []byte) []byte {
	cached := min(u.Cached, u.In)
	dst = strconv.AppendInt(append(dst, `{"input":`...), u.In-cached, 10)
	dst = strconv.AppendInt(append(dst, `,"output":`...), u.Out, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheRead":`...), cached, 10)
	if u.Thought > 0 {
		dst = strconv.AppendInt(append(dst, `,"reasoning":`...), u.Thought, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"cacheWrite":0,"totalTokens":`...), u.In+u.Out, 10)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}
