package provider_test

import (
	"flag"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

// conversion is what a request is made of.
type conversion struct {
	context transcript.Context
	options *provider.Options
}

var conversions = rapid.Custom(func(t *rapid.T) conversion { return conversion{anyContext(t), anyOptions(t)} })

var seeds = flag.Int("seeds", 200, "the contexts that TestRequestsFollowTheRules makes")

// more are seeds after the first 200 at which a request broke a rule: what -seeds=100000 finds becomes a case here.
var more = []int{}

// Whatever a context holds, what comes out is a request that the API's written rules allow; and the same each time.
func TestRequestsFollowTheRules(t *testing.T) {
	for _, api := range provider.APIs() {
		t.Run(string(api), func(t *testing.T) {
			for seed := range *seeds {
				follows(t, api, seed)
			}
			for _, seed := range more {
				follows(t, api, seed)
			}
		})
	}
}

// follows converts the context of a seed.
func follows(t *testing.T, api provider.API, seed int) {
	t.Helper()
	in := conversions.Example(seed)
	r, err := provider.Convert(t.Context(), in.context, api, in.options)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if wrong := check(r); wrong != "" {
		for i, m := range in.context.Messages {
			t.Logf("in %d: %s", i, m.Raw)
		}
		for i, m := range r.Messages {
			t.Logf("out %d: %s", i, m)
		}
		t.Fatalf("seed %d: %s", seed, wrong)
	}
	again, err := provider.Convert(t.Context(), in.context, api, in.options)
	if err != nil || string(again.Body()) != string(r.Body()) {
		t.Fatalf("seed %d: another request the second time: %v\n%s\n%s", seed, err, r.Body(), again.Body())
	}
}
