package faultproxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counter is a server that counts the applied requests.
type counter struct {
	mu      sync.Mutex
	applied int
	host    string
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied++
	c.host = r.Host
	w.Header().Set("ETag", `"v"`)
	_, _ = w.Write(append([]byte("got "), p...))
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied
}

func put(t *testing.T, url string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/bucket/key", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "signed.example.com"
	req.Header.Set("If-Match", `"v0"`)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	p, err := io.ReadAll(res.Body)
	return res.StatusCode, string(p), err
}

// Each fault has its effect on the server and on the client, once.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault   Fault
		applied int
		status  int // for the client; 0 = an error
	}{
		{Fault{}, 1, 200},
		{Fault{Kind: LoseRequest}, 0, 0},
		{Fault{Kind: Refuse, Status: 503, Code: "SlowDown"}, 0, 503},
		{Fault{Kind: Refuse, Status: 429}, 0, 429},
		{Fault{Kind: LoseAnswer}, 1, 0},
		{Fault{Kind: CutAnswer}, 1, 0},
		{Fault{Kind: DelayAnswer, Delay: time.Millisecond}, 1, 200},
		{Fault{Kind: ReplaceAnswer, Status: 500, Code: "InternalError"}, 1, 500},
		{Fault{Kind: Hold}, 0, 0},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			server := &counter{}
			upstream := httptest.NewServer(server)
			defer upstream.Close()
			p, err := New(upstream.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.Script(c.fault)
			status, body, err := put(t, p.URL)
			if server.count() != c.applied || c.status == 0 && err == nil || c.status != 0 && (status != c.status || err != nil) {
				t.Errorf("applied %d times, client got %d %q, %v; want %d and %d", server.count(), status, body, err, c.applied, c.status)
			}
			if c.fault.Code != "" && !strings.Contains(body, "<Code>"+c.fault.Code+"</Code>") {
				t.Errorf("body %q", body)
			}
			if p.Waiting() != 0 {
				t.Error("the fault was not used up")
			}
			if status, _, err := put(t, p.URL); status != 200 || err != nil || server.host != "signed.example.com" {
				t.Errorf("the next request: %d, %v, host %q", status, err, server.host)
			}
			held := 0
			if c.fault.Kind == Hold {
				held = 1
			}
			statuses, err := p.Deliver(t.Context())
			if err != nil || len(statuses) != held || server.count() != c.applied+1+held {
				t.Errorf("delivered %v, %v; applied %d times", statuses, err, server.count())
			}
			events := p.Log()
			if len(events) != 2 || events[0].Client != c.status || (events[0].Server == 200) != (c.applied == 1) || events[0].Cond != `If-Match: "v0"` {
				t.Errorf("log %v", events)
			}
		})
	}
}

// A fault waits for a request that it matches, and a stopped server is a reset.
func TestScript(t *testing.T) {
	// It keeps its port while it is stopped, so that no other process gets the request.
	var gone atomic.Bool
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		(&counter{}).ServeHTTP(w, r)
	}))
	defer upstream.Close()
	p, err := New(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Script(Fault{Kind: Refuse, Status: 500, Match: func(r *http.Request) bool { return r.Method == http.MethodDelete }})
	p.Decide(func(*http.Request) Fault { return Fault{Kind: Refuse, Status: 418} })
	if status, _, err := put(t, p.URL); status != 418 || err != nil || p.Waiting() != 1 {
		t.Errorf("%d, %v; %d faults wait", status, err, p.Waiting())
	}
	p.Decide(nil)
	gone.Store(true)
	if status, _, err := put(t, p.URL); err == nil || errors.Is(err, io.EOF) && status != 0 {
		t.Errorf("without a server: %d, %v", status, err)
	}
}
