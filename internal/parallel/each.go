// Package parallel does independent pieces of work at once.
//
// Guarantees: never more at once than the written bound; results in the order of the pieces; every goroutine
// that was started has ended when Each returns, or Close.
package parallel

import "context"

// atOnce bounds the small reads or writes under way at once.
const atOnce = 16

// Each calls f for 0 to n-1, at most 16 at once, and returns the first error. Once ctx has ended, what has not
// begun does not begin.
func Each(ctx context.Context, n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	slots, errs := make(chan struct{}, atOnce), make(chan error, n)
	for i := range n {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if err := ctx.Err(); err != nil {
				errs <- err
				return
			}
			errs <- f(i)
		}()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
