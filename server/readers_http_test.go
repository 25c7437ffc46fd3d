package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Requests that share a handle while others write, through this server and another one, each see all that was
// acknowledged before they were sent, and a mark for each entry.
func TestSharedReadsAreNew(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		a, b := newSite(t, url), newSite(t, url)
		a.create("s")
		var mu sync.Mutex
		newest := ""
		var all sync.WaitGroup
		for i, s := range []*site{a, b} {
			all.Go(func() {
				for k := range 15 {
					doc := s.do("POST", commits, hello(fmt.Sprint(i, "-", k)), "If-Match: *")
					if doc.StatusCode == http.StatusPreconditionFailed { // the other one was first
						continue
					}
					mu.Lock()
					newest = doc.want(t, 200)["entries"].([]any)[0].(string)
					mu.Unlock()
				}
			})
			for range 3 {
				all.Go(func() {
					for range 15 {
						mu.Lock()
						had := newest
						mu.Unlock()
						ids, marks := s.marked("order=desc&limit=500")
						if len(ids) != len(marks) || had != "" && !slices.Contains(ids, had) {
							t.Errorf("%d entries, %d marks; has %s: %v", len(ids), len(marks), had, slices.Contains(ids, had))
						}
					}
				})
			}
		}
		all.Wait()
	})
}
