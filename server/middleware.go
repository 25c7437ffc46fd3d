package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// seenKey is the key of a request's *observed in its context.
type seenKey struct{}

// middleware is what every request passes before its operation.
func (s *Server) middleware(next http.Handler) http.Handler {
	protect := http.NewCrossOriginProtection()
	for _, origin := range s.o.Origins {
		if origin != "*" {
			_ = protect.AddTrustedOrigin(origin) // New has checked it
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		seen := &observed{ResponseWriter: w, s: s, operation: "none", began: s.o.Now()}
		w = seen
		defer s.observe(r, seen)
		body := s.timed(seen, r)
		if !s.knownHost(r.Host) {
			s.fail(w, r, newProblem(http.StatusMisdirectedRequest, "host",
				"call the server by a name that it was given", errors.New("the server does not have this name")))
			return
		}
		if s.crossOrigin(w, r) {
			return
		}
		if err := protect.Check(r); err != nil && !s.allowsOrigin(r.Header.Get("Origin")) {
			s.fail(w, r, newProblem(http.StatusForbidden, "permission", "",
				errors.New("a page of another site may not do this")))
			return
		}
		r, ok := s.place(r)
		if !ok {
			s.fail(w, r, errNoPath)
			return
		}
		if !s.countsCookie(r) {
			r = r.Clone(r.Context())
			r.Header.Del("Cookie")
		}
		r = r.WithContext(context.WithValue(r.Context(), seenKey{}, seen))
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// access returns what a request may do; an error if it may not do what an operation does.
func (s *Server) access(r *http.Request, op *operation) (on Access, err error) {
	if op.needs == 0 {
		return on, nil
	}
	if op.ofServer && r.PathValue("tenant") != "" {
		return on, errNoPath
	}
	if on, err = s.o.Authorize(r); err != nil {
		return on, err
	}
	if on.Tenant == "" {
		on.Tenant = r.PathValue("tenant")
	}
	switch {
	case op.needs&changes != 0 && s.o.ReadOnly:
		return on, newProblem(http.StatusForbidden, "read-only", "", errors.New("the server is read-only"))
	case !on.Rights.has(op.needs):
		return on, ErrForbidden
	}
	if on.Store == nil && !op.storeless {
		on.Store, err = s.storeOf(r)
	}
	return on, err
}

// countsCookie reports whether cookies of a request count: not those that a page sends which is allowed only because
// all are.
func (s *Server) countsCookie(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || slices.Contains(s.o.Origins, origin) ||
		origin == "http://"+r.Host || origin == "https://"+r.Host
}

// knownHost reports whether the server goes by a name. A page on another site whose name was made to lead here asks
// for that name.
func (s *Server) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(name string) bool {
		return name == "*" || strings.EqualFold(name, host)
	})
}

func (s *Server) allowsOrigin(origin string) bool {
	return origin != "" && (slices.Contains(s.o.Origins, "*") || slices.Contains(s.o.Origins, origin))
}

// crossOrigin answers a page of another origin with what it may do, and answers its preflight request: done.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	h := w.Header()
	h.Add("Vary", "Origin")
	if !s.allowsOrigin(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if slices.Contains(s.o.Origins, origin) {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers",
		"Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Coppice-Writer, "+
			"Last-Event-ID, Accept")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// observed is a ResponseWriter that records what was answered, and that disconnects a client which does not read it.
type observed struct {
	http.ResponseWriter
	s         *Server
	operation string   // "none" = it came to none
	on        Access   // of the operation
	made      string   // the commit on which a write was made, as its condition has it
	tenant    *tenant  // whose store is in use; nil = none
	full      error    // of its quota, for what is no repeat; nil = there is room
	stored    bool     // it is a write, and stored something
	absent    bool     // a client that may not see all sessions was found to name none
	created   bool     // the write created its session
	outcome   int      // 200, or the status of the error; 0 = the operation did not come to an end
	ids       []string // what else an administrative act was done to
	dry       bool     // an administrative act was to change nothing
	give      func()   // returns the part of a budget that the request has; nil = it has none
	large     bool     // its body is large
	brought   int64    // bytes of its body, and of the uploads that it stores
	began     time.Time
	status    int
	bytes     int64
}

// seenOf returns the record of a request, which passed the middleware.
func seenOf(r *http.Request) *observed { return r.Context().Value(seenKey{}).(*observed) }

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *observed) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.s.deadline(o.ResponseWriter) // of an answer without a body; that of the answer before it may have passed
	o.ResponseWriter.WriteHeader(status)
}

// maxPiece is how much of an answer has one deadline, in bytes. A client that reads slowly has time by the length.
const maxPiece = 64 << 10

func (o *observed) Write(p []byte) (written int, err error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	for first := true; first || err == nil && written < len(p); first = false {
		o.s.deadline(o.ResponseWriter)
		n, werr := o.ResponseWriter.Write(p[written:min(len(p), written+maxPiece)])
		written, err = written+n, werr
	}
	o.bytes += int64(written)
	return written, err
}

// observe logs a request: not its query, nor any content of a session.
func (s *Server) observe(r *http.Request, o *observed) {
	took := s.o.Now().Sub(o.began)
	s.metrics.count(o, took)
	s.o.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.Int("status", o.status), slog.Int64("bytes", o.bytes),
		slog.Duration("took", took))
}

// deadline bounds the sending of the next piece of an answer.
func (s *Server) deadline(w http.ResponseWriter) {
	at := time.Now().Add(s.o.WriteTimeout)                 //nolint:forbidigo // connections go by the machine's clock
	_ = http.NewResponseController(w).SetWriteDeadline(at) // a recorder has none
}
