package manager_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// path returns the entries of lines without id and parent.
func path(t *testing.T, lines ...string) []transcript.Entry {
	t.Helper()
	out, err := parsed(lines...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parsed(lines ...string) (out []transcript.Entry, err error) {
	for i, line := range lines {
		raw := strings.Replace(line, "{", fmt.Sprintf(`{"id":"e%d","parentId":null,`, i), 1)
		l, err := transcript.ParseLine([]byte(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", raw, err)
		}
		out = append(out, l.Entry(uint64(i)))
	}
	return out, nil
}

func sequence(list []transcript.Entry, err error) iter.Seq2[transcript.Entry, error] {
	return func(yield func(transcript.Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(transcript.Entry{}, err)
		}
	}
}

func answer(fields string) string {
	return `{"type":"message","message":{"role":"assistant","content":"x",` + fields + `}}`
}

// Entries with a usage: package message reads that of every provider.
func TestWhatHasAUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want manager.Usage
		ok   bool
	}{
		"a compaction's own": {
			`{"type":"compaction","summary":"s","usage":{"input":1,"output":2}}`,
			manager.Usage{Answers: 1, Input: 1, Output: 2, Total: 3},
			true,
		},
		"a ledger's entry": {
			`{"type":"model_usage","purpose":"title","provider":"p","model":"m","usage":{"input":1,"output":2}}`,
			manager.Usage{Answers: 1, Input: 1, Output: 2, Total: 3},
			true,
		},
		"nothing counted":            {answer(`"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}}`), manager.Usage{Answers: 1}, true},
		"an item":                    {`{"type":"message","message":{"type":"reasoning","summary":[]}}`, manager.Usage{Answers: 1}, true},
		"a user":                     {`{"type":"message","message":{"role":"user","content":"x","usage":{"input":0}}}`, manager.Usage{}, false},
		"a tool's own":               {`{"type":"message","message":{"role":"toolResult","content":[],"usage":{"input":1}}}`, manager.Usage{Answers: 1, Input: 1, Total: 1}, true},
		"a summary alone":            {`{"type":"compaction","summary":"s"}`, manager.Usage{}, false},
		"missing usage":              {answer(`"n":1`), manager.Usage{Answers: 1}, true},
		"the word in a custom entry": {`{"type":"custom","customType":"x","data":{},"usage":{"input":1}}`, manager.Usage{}, false},
	} {
		got, ok := manager.UsageOf(path(t, tt.line)[0])
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestSumByModel(t *testing.T) {
	list := path(t,
		`{"type":"message","message":{"role":"user","content":"usage"}}`,
		answer(`"provider":"p","model":"m","usage":{"input":1,"output":2}`),
		answer(`"model":"n","usage":{"input":10,"output":20}`),
		answer(`"provider":"p","model":"m","usage":{"input":100,"output":200}`),
		answer(`"usage":{"input":1000,"output":2000}`),
	)
	got, err := manager.SumUsage(sequence(list, nil))
	if err != nil || got.Entries != 5 || got.Answers != 4 || got.Total != 3333 {
		t.Errorf("%+v, %v", got, err)
	}
	if m := got.Models; len(m) != 3 || m["p/m"].Total != 303 || m["n"].Total != 30 || m[""].Total != 3000 {
		t.Errorf("models %+v", m)
	}
	broken := errors.New("broken")
	if got, err = manager.SumUsage(sequence(list[:2], broken)); !errors.Is(err, broken) || got.Total != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSettingsInForce(t *testing.T) {
	list := path(t,
		answer(`"provider":"p","model":"spoke first"`),
		`{"type":"model_change","model":"q/explicit"}`,
		`{"type":"model_change","model":"q/small","role":"smol"}`,
		`{"type":"thinking_level_change","thinkingLevel":"high","configured":"auto"}`,
		`{"type":"service_tier_change","serviceTier":"flex"}`,
		`{"type":"mode_change","mode":"plan","data":{"file":"/p"}}`,
		`{"type":"ttsr_injection","injectedRules":["a","b"]}`,
		`{"type":"ttsr_injection","injectedRules":["b","c"]}`,
		`{"type":"session_info","name":"the title"}`,
		`{"type":"active_tools_change","activeToolNames":["read"]}`,
		`{"type":"mode_change","mode":7}`,
		answer(`"provider":"p","model":"spoke last"`),
	)
	s := manager.SettingsInForce(list, transcript.OMP)
	got := fmt.Sprintln(s.Models, s.ThinkingLevel, s.Configured, s.ServiceTier, s.Mode, string(s.ModeData), s.InjectedRules, s.Title, s.Tools)
	want := `map[default:q/explicit smol:q/small] high auto flex plan {"file":"/p"} [a b c] the title [read]` + "\n"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for p, want := range map[transcript.Profile]string{
		transcript.Pi: "p/spoke last", transcript.Coppice: "p/spoke last", transcript.Operator: "q/explicit",
	} {
		if m := manager.SettingsInForce(list, p).Models["default"]; m != want {
			t.Errorf("profile %q: %s, want %s", p, m, want)
		}
	}
	cleared := path(t, `{"type":"service_tier_change","serviceTier":"flex"}`, `{"type":"service_tier_change","serviceTier":null}`,
		`{"type":"thinking_level_change","thinkingLevel":null}`, `{"type":"model_change","provider":"p","modelId":"m"}`)
	if s = manager.SettingsInForce(cleared, transcript.OMP); s.ServiceTier != "" || s.ThinkingLevel != "off" || s.Mode != "none" || s.Models["default"] != "p/m" {
		t.Errorf("cleared: %+v", s)
	}
}

// Model and thinking level are those that Context returns.
func TestSettingsAgreeWithTheContext(t *testing.T) {
	list := path(t, `{"type":"model_change","provider":"p","modelId":"m"}`, answer(`"provider":"q","model":"n"`),
		`{"type":"thinking_level_change","thinkingLevel":"low"}`, `{"type":"mode_change","mode":"plan"}`)
	for n := range len(list) + 1 {
		for _, p := range []transcript.Profile{transcript.Coppice, transcript.Pi, transcript.Operator} {
			c, s := transcript.BuildContext(list[:n], p).Settings, manager.SettingsInForce(list[:n], p)
			if c.Model != s.Models["default"] || c.ThinkingLevel != s.ThinkingLevel || max(c.Mode, "none") != max(s.Mode, "none") {
				t.Errorf("%d entries, profile %q: %+v, %+v", n, p, c, s)
			}
		}
	}
}
