package wire

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Usage is what was counted of an answer, as Codex counts: the input with what came from the cache.
type Usage struct{ in, cached, out, thought, total int64 }

// CountOf takes it from what a message of pi's says.
func CountOf(u []byte) Usage {
	count := func(name string) int64 {
		n, err := strconv.ParseInt(string(rawjson.Field(u, name)), 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n
	}
	n := Usage{in: count("input") + count("cacheRead") + count("cacheWrite"), cached: count("cacheRead"), out: count("output"), thought: count("reasoning")}
	n.total = n.in + n.out
	return n
}

// Object is the count as Codex has it.
func (u Usage) Object() []byte {
	num := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	return rawjson.Object("input_tokens", num(u.in), "cached_input_tokens", num(u.cached), "output_tokens", num(u.out),
		"reasoning_output_tokens", num(u.thought), "total_tokens", num(u.total))
}

// usageFields are what Codex needs of a count.
var usageFields = []string{"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"}

// IsUsage reports a count that Codex loads.
func IsUsage(u []byte) bool {
	for _, name := range usageFields {
		if !IsCount(rawjson.Field(u, name)) {
			return false
		}
	}
	return true
}

// ReadUsage reads a count as Codex has it.
func ReadUsage(u []byte) (n Usage) {
	for i, to := range []*int64{&n.in, &n.cached, &n.out, &n.thought, &n.total} {
		if v := rawjson.Field(u, usageFields[i]); IsCount(v) {
			for _, c := range v {
				*to = *to*10 + int64(c-'0')
			}
		}
	}
	return n
}

// Add gives a sum; over 2^60 it stays as it is.
func (u Usage) Add(n Usage) Usage {
	const most = 1 << 60
	if u.total >= most {
		return u
	}
	return Usage{u.in + n.in, u.cached + n.cached, u.out + n.out, u.thought + n.thought, u.total + n.total}
}
