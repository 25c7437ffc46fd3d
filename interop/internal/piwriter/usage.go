package piwriter

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Usage returns the usage of a message of any provider in pi's form; missing counts are 0. A usage that pi's programs
// can read stays unchanged, and so does each of its numbers that counts the same.
func Usage(raw []byte) []byte {
	u := message.UsageOf(raw)
	if usageFine(u.Raw) {
		return u.Raw
	}
	count := func(name string, n int64) []byte {
		own := rawjson.Field(u.Raw, name)
		if is, ok := message.Count(own); ok && is == n {
			return own
		}
		return strconv.AppendInt(nil, n, 10)
	}
	some := func(name string, n int64) []byte {
		if n == 0 {
			return nil
		}
		return count(name, n)
	}
	return rawjson.Object("input", count("input", u.Input), "output", count("output", u.Output),
		"cacheRead", count("cacheRead", u.CacheRead), "cacheWrite", count("cacheWrite", u.CacheWrite), "cacheWrite1h",
		some("cacheWrite1h", u.Hour),
		"reasoning", some("reasoning", u.Reasoning), "totalTokens", count("totalTokens", u.Total), "cost", costOf(u))
}

// costOf returns a cost in pi's form; parts that are missing are 0.
func costOf(u message.Usage) []byte {
	parts := rawjson.Field(u.Raw, "cost")
	part := func(name string) []byte {
		if v := rawjson.Field(parts, name); rawjson.IsNumber(v) {
			return v
		}
		return []byte("0")
	}
	total := u.Cost
	if total == nil {
		total = []byte("0")
	}
	return rawjson.Object("input", part("input"), "output", part("output"), "cacheRead", part("cacheRead"),
		"cacheWrite", part("cacheWrite"), "total", total)
}
