// Package faultproxy is a proxy between an HTTP client and its server, of S3 or of `coppice serve`, that breaks
// selected requests: it can apply a request and lose, cut, delay or replace its answer, refuse a request with an answer
// of its own, or keep it and deliver it later, when its sender has given up.
//
// It passes on the Host header, which a client signs. Its log contains every request.
package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Kind is the fault of a request.
type Kind uint8

// The faults. Those from LoseAnswer to ReplaceAnswer apply the request; Hold applies it with Deliver.
const (
	None          Kind = iota
	LoseRequest        // cut the connection before the server sees the request
	Refuse             // answer Status and Code without asking the server
	LoseAnswer         // apply, then reset the connection
	CutAnswer          // apply, then send a part of the answer
	DelayAnswer        // apply, then answer after Delay
	ReplaceAnswer      // apply, then answer Status and Code
	Hold               // reset the connection, and keep the request for Deliver
)

var kindNames = [...]string{
	"none", "lose-request", "refuse", "lose-answer", "cut-answer", "delay-answer",
	"replace-answer", "hold",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return strconv.Itoa(int(k))
}

// Fault is one fault, for one request.
type Fault struct {
	Kind   Kind
	Status int    // of Refuse and ReplaceAnswer
	Code   string // S3's error code; "" = an answer without a body
	Delay  time.Duration
	// Match selects the request; nil = the next conditional PUT.
	Match func(r *http.Request) bool
	// Then, if not nil, runs when the server has handled the request and the client waits.
	Then func()
}

func (f Fault) String() string {
	if f.Status != 0 {
		return fmt.Sprintf("%s %d %s", f.Kind, f.Status, f.Code)
	}
	return f.Kind.String()
}

// Conditional selects PUTs with a condition, whose outcome can be ambiguous.
func Conditional(r *http.Request) bool {
	return r.Method == http.MethodPut && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "")
}

// Any selects every request.
func Any(*http.Request) bool { return true }

// Event is one request and its outcome.
type Event struct {
	Method, Path, Cond string
	Fault              Fault
	Server             int // the server's status; 0 = not asked, or no answer
	Client             int // the client's status; 0 = no complete answer
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s %s: %s, server %d, client %d", e.Method, e.Path, e.Cond, e.Fault, e.Server, e.Client)
}

// Proxy is an HTTP server in front of another one. Safe for concurrent use.
type Proxy struct {
	URL string

	server *httptest.Server
	client *http.Client

	mu       sync.Mutex
	upstream *url.URL
	script   []Fault
	decide   func(r *http.Request) Fault
	held     []*request
	events   []Event
}

// request is a request that was read completely.
type request struct {
	method, path, host string
	header             http.Header
	body               []byte
}

// maxBody bounds the body of one request or answer, in bytes.
const maxBody = 65 << 20

// New starts a proxy in front of upstream, the URL of a server.
func New(upstream string) (*Proxy, error) {
	p := &Proxy{client: &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if err := p.Redirect(upstream); err != nil {
		return nil, err
	}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL
	return p, nil
}

// Close ends the proxy. Held requests are dropped.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
	p.client.CloseIdleConnections()
}

// Redirect makes the proxy send later and held requests to upstream: the server was restarted.
func (p *Proxy) Redirect(upstream string) error {
	u, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = u
	return nil
}

// Script adds faults for later requests, in order: a request gets the first one that it matches.
func (p *Proxy) Script(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, faults...)
}

// Decide makes f choose the fault of every request that no fault of the script matches; nil = none. It is called by one
// request at a time.
func (p *Proxy) Decide(f func(r *http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = f
}

// Log returns all events so far, in the order of the answers: a caller that has an answer, or its loss, finds it there.
func (p *Proxy) Log() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Event(nil), p.events...)
}

// Waiting returns the number of unused faults of the script.
func (p *Proxy) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.script)
}

// Clear removes the unused faults of the script.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = nil
}

// Held returns the number of requests that wait for Deliver.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// Deliver sends the held requests to the server, in order, and returns the statuses of its answers.
func (p *Proxy) Deliver(ctx context.Context) ([]int, error) {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	var statuses []int
	var errs []error
	for _, r := range held {
		a, err := p.forward(ctx, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		statuses = append(statuses, a.status)
	}
	return statuses, errors.Join(errs...)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client has gone
	}
	f := p.choose(r)
	req := &request{method: r.Method, path: r.URL.RequestURI(), host: r.Host, header: r.Header.Clone(), body: body}
	e := Event{Method: r.Method, Path: r.URL.Path, Fault: f}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if v := r.Header.Get(name); v != "" {
			e.Cond = name + ": " + v
		}
	}
	if f.Then == nil {
		f.Then = func() {}
	}
	switch f.Kind {
	case LoseRequest:
		f.Then()
		p.note(e)
		reset(w, nil)
		return
	case Refuse:
		f.Then()
		e.Client = f.Status
		p.note(e)
		refuse(w, f)
		return
	case Hold:
		p.mu.Lock()
		p.held = append(p.held, req)
		p.mu.Unlock()
		f.Then()
		p.note(e)
		reset(w, nil)
		return
	case None, LoseAnswer, CutAnswer, DelayAnswer, ReplaceAnswer:
	}
	// A client that disconnects does not take back its request.
	a, err := p.forward(context.WithoutCancel(r.Context()), req)
	if err != nil {
		p.note(e)
		reset(w, nil)
		return
	}
	e.Server = a.status
	f.Then()
	if f.delay(r.Context()) {
		e.Client = a.told(f)
	}
	p.note(e)
	if e.Client != 0 || f.Kind != DelayAnswer {
		a.answer(w, f)
	}
}

// note appends an event to the log, before the client is answered, so that the client finds it there.
func (p *Proxy) note(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

func (p *Proxy) choose(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.script {
		match := f.Match
		if match == nil {
			match = Conditional
		}
		if match(r) {
			p.script = append(p.script[:i:i], p.script[i+1:]...)
			return f
		}
	}
	if p.decide != nil {
		return p.decide(r)
	}
	return Fault{}
}

// forward sends a request to the server and reads the whole answer.
func (p *Proxy) forward(ctx context.Context, r *request) (*answer, error) {
	p.mu.Lock()
	upstream := p.upstream.Scheme + "://" + p.upstream.Host
	p.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, r.method, upstream+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Host, req.Header, req.ContentLength = r.host, r.header.Clone(), int64(len(r.body))
	if len(r.body) == 0 {
		req.Body = http.NoBody
	}
	for _, name := range []string{"Connection", "Expect", "Keep-Alive"} {
		req.Header.Del(name)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return nil, err
	}
	return &answer{status: res.StatusCode, header: res.Header, body: body, length: res.ContentLength}, nil
}

// answer is the server's answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	length int64
}

// delay waits as long as the fault requires; false if the client has disconnected meanwhile.
func (f Fault) delay(ctx context.Context) bool {
	if f.Kind != DelayAnswer {
		return true
	}
	t := time.NewTimer(f.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// told returns the status that arrives whole; 0 = none.
func (a *answer) told(f Fault) int {
	switch f.Kind {
	case LoseAnswer, CutAnswer:
		return 0
	case ReplaceAnswer:
		return f.Status
	case None, LoseRequest, Refuse, DelayAnswer, Hold:
	}
	return a.status
}

// answer answers the client as the fault requires.
func (a *answer) answer(w http.ResponseWriter, f Fault) {
	switch f.Kind {
	case LoseAnswer:
		reset(w, nil)
		return
	case CutAnswer:
		reset(w, a.part())
		return
	case ReplaceAnswer:
		refuse(w, f)
		return
	case None, LoseRequest, Refuse, DelayAnswer, Hold:
	}
	maps.Copy(w.Header(), a.header)
	if a.length >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// part returns a prefix of the answer: half of the body if there is one, else half a header.
func (a *answer) part() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	if len(a.body) == 0 {
		b.WriteString("ETa")
		return b.Bytes()
	}
	_ = a.header.Write(&b)
	if a.header.Get("Content-Length") == "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.body))
	}
	b.WriteString("\r\n")
	b.Write(a.body[:len(a.body)/2])
	return b.Bytes()
}

// refuse answers as S3 would.
func refuse(w http.ResponseWriter, f Fault) {
	if f.Code == "" {
		w.WriteHeader(f.Status)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.Status)
	fmt.Fprintf(w,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>injected</Message></Error>", f.Code)
}

// reset sends some bytes and cuts the connection; without any it sends RST, as a crash would.
func reset(w http.ResponseWriter, some []byte) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer c.Close()
	if len(some) > 0 {
		_, _ = c.Write(some)
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
