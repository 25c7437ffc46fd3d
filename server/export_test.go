package server

// SetBlamed sets how many commits one request for the history of a value looks at.
func SetBlamed(s *Server, n int) { s.blamed = n }
