package codex

import (
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// writtenUsage is the token count of an answer, as Codex counts: in includes the cache.
type writtenUsage struct{ in, cached, out, thought, total int64 }

// usageOfMessage converts the usage of a message in pi's form.
func usageOfMessage(u []byte) writtenUsage {
	count := func(name string) int64 {
		n, err := strconv.ParseInt(string(rawjson.Field(u, name)), 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n
	}
	n := writtenUsage{
		in: count("input") + count("cacheRead") + count("cacheWrite"), cached: count("cacheRead"),
		out: count("output"), thought: count("reasoning"),
	}
	n.total = n.in + n.out
	return n
}

// Object returns the count as a JSON object of Codex.
func (u writtenUsage) Object() []byte {
	num := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	return rawjson.Object("input_tokens", num(u.in), "cached_input_tokens", num(u.cached),
		"output_tokens", num(u.out),
		"reasoning_output_tokens", num(u.thought), "total_tokens", num(u.total))
}

// loadedUsageFields are the fields that Codex requires in a count.
var loadedUsageFields = []string{
	"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens",
	"total_tokens",
}

// isLoadableUsage reports whether Codex loads a count.
func isLoadableUsage(u []byte) bool {
	return !slices.ContainsFunc(loadedUsageFields, func(name string) bool { return !isCount(rawjson.Field(u, name)) })
}

// readWrittenUsage parses a count of Codex.
func readWrittenUsage(u []byte) (n writtenUsage) {
	for i, to := range []*int64{&n.in, &n.cached, &n.out, &n.thought, &n.total} {
		if v := rawjson.Field(u, loadedUsageFields[i]); isCount(v) {
			for _, c := range v {
				*to = *to*10 + int64(c-'0')
			}
		}
	}
	return n
}

// Add returns the sum. A count over 2^60 does not grow.
func (u writtenUsage) Add(n writtenUsage) writtenUsage {
	const most = 1 << 60
	if u.total >= most {
		return u
	}
	return writtenUsage{u.in + n.in, u.cached + n.cached, u.out + n.out, u.thought + n.thought, u.total + n.total}
}
