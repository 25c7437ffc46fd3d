package provider_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/provider"
)

// Whatever a context holds, what comes out is a request that the API's written rules allow; and the same each time.
func TestRequestsFollowTheRules(t *testing.T) {
	for _, api := range provider.APIs() {
		t.Run(string(api), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c, o := anyContext(t), anyOptions(t)
				r, err := provider.Convert(t.Context(), c, api, o)
				if err != nil {
					t.Fatal(err)
				}
				if wrong := check(r); wrong != "" {
					for i, m := range c.Messages {
						t.Logf("in %d: %s", i, m.Raw)
					}
					for i, m := range r.Messages {
						t.Logf("out %d: %s", i, m)
					}
					t.Fatal(wrong)
				}
				again, err := provider.Convert(t.Context(), c, api, o)
				if err != nil || string(again.Body()) != string(r.Body()) {
					t.Fatalf("another request the second time: %v\n%s\n%s", err, r.Body(), again.Body())
				}
			})
		})
	}
}
