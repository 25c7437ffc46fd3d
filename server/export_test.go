package server

import "time"

// SetStreamed sets how long a stream of events lasts.
func SetStreamed(s *Server, d time.Duration) { s.streamed = d }

// SetBlamed sets how many commits one request for the history of a value looks at.
func SetBlamed(s *Server, n int) { s.blamed = n }

// SetIndexed sets how long a search waits for the index.
func SetIndexed(s *Server, d time.Duration) { s.indexed = d }

// SetViewBytes sets how many bytes the drawn trees take together.
func SetViewBytes(s *Server, n int64) { s.views.most = n }

// SetPatience sets how long a request waits for its part of what is bounded.
func SetPatience(s *Server, d time.Duration) {
	for _, b := range []*budget{s.bodies, s.files, s.imports, s.searches, s.wholes} {
		b.wait = d
	}
}

// SetWholes sets how many requests read a session as a whole at a time.
func SetWholes(s *Server, n int64) { s.wholes.all = n }

// SetIssued sets how many short-lived tokens are valid at a time, and returns the number before.
func SetIssued(t *Tokens, most int) int {
	old := t.most
	t.most = most
	return old
}
