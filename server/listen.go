package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/coppice-go/coppice/internal/api"
)

// Listen returns a listener for h.Serve, and changes h so that it answers problem documents where Go's HTTP server
// would refuse a request in plain text without calling a handler: malformed requests, headers that are too long,
// transfer encodings and expectations that it does not implement. Call it once, before h serves. With HTTP/2 such
// requests are errors of its frames, and headers that are too long are 431 with a page of Go's.
//
// config is for TLS, with h.Serve and not h.ServeTLS, over which clients choose HTTP/1.1 or HTTP/2; nil = no TLS.
func Listen(h *http.Server, l net.Listener, config *tls.Config) net.Listener {
	if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		h.Protocols = &http.Protocols{}
		h.Protocols.SetHTTP1(true)
		h.Protocols.SetUnencryptedHTTP2(true) // the server sees what is within TLS
	}
	handler, inContext, state := h.Handler, h.ConnContext, h.ConnState
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.answering.Store(true)
			if secure, ok := c.Conn.(*tls.Conn); ok && r.TLS == nil {
				now := secure.ConnectionState()
				r.TLS = &now
			}
		}
		handler.ServeHTTP(w, r)
	})
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if inContext != nil {
			ctx = inContext(ctx, c)
		}
		return context.WithValue(ctx, connKey{}, c)
	}
	h.ConnState = func(c net.Conn, s http.ConnState) {
		if own, ok := c.(*conn); ok && s == http.StateIdle {
			own.answering.Store(false)
		}
		if state != nil {
			state(c, s)
		}
	}
	return &listener{l, config}
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

// listener is one whose connections rewrite the answers of Go's server.
type listener struct {
	net.Listener
	tls *tls.Config // nil = none
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.tls != nil {
		c = tls.Server(c, l.tls)
	}
	return &conn{Conn: c}, nil
}

// conn is a connection. Go's server refuses a request with one Write, between the answers of handlers: net/http has no
// hook for it. What is written for a handler passes as it is, even if it has the bytes of such an answer.
type conn struct {
	net.Conn
	answering atomic.Bool // from the call of a handler until its whole answer is written
}

// Read answers a client that does not speak TLS.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && record.Conn != nil &&
		record.RecordHeader[0] >= 'A' && record.RecordHeader[0] <= 'Z' { // a method
		_, _ = record.Conn.Write(problemResponse("1.1", http.StatusBadRequest, "this port speaks TLS: use https"))
		return n, io.EOF // nothing more can be answered
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.answering.Load() {
		return c.Conn.Write(p)
	}
	own := rewritten(p)
	if own == nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(own); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite lets Go's server end its half of the connection, so that a client that still sends can read the answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// rewritten returns the problem document of an answer with which Go's server refuses a request; nil = p is none.
func rewritten(p []byte) []byte {
	line, _, _ := bytes.Cut(p, []byte("\r\n"))
	version, rest, ok := strings.Cut(string(line[:min(len(line), 200)]), " ")
	version, http1 := strings.CutPrefix(version, "HTTP/")
	code, text, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if !ok || !http1 || err != nil || status < http.StatusBadRequest || status > 599 {
		return nil
	}
	detail := "the request is not one of HTTP/1.1"
	switch _, why, specific := strings.Cut(text, ": "); {
	case specific:
		detail = why
	case status == http.StatusRequestHeaderFieldsTooLarge:
		detail = "the headers are too long"
	case status == http.StatusNotImplemented:
		detail = "the transfer encoding is not known"
	case status == http.StatusExpectationFailed:
		detail = "the expectation is not known"
	}
	return problemResponse(version, status, detail)
}

// problemResponse returns an answer after which the connection is closed.
func problemResponse(version string, status int, detail string) []byte {
	p := newProblem(status, "request", "", errors.New(detail+"; nothing was stored"))
	body, err := api.Marshal(p.Problem)
	if err != nil { // it has no raw JSON
		panic(err)
	}
	return fmt.Appendf(nil, "HTTP/%s %d %s\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n"+
		"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n",
		version, status, http.StatusText(status), len(body)+1, body)
}
