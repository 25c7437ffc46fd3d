package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// A program serves a store with a server of its own. After http.Server.Shutdown, which waits for streams that EndStreams
// has ended, Close finishes the commits.
func ExampleNew() {
	ctx := context.Background()
	st, err := coppice.Open(ctx, "mem:", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		panic(err)
	}
	put := httptest.NewRequest(http.MethodPut, "http://localhost/v1/sessions/trip", strings.NewReader(`{"title":"A trip"}`))
	put.Header.Set("If-None-Match", "*")
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, put)
	fmt.Println(w.Code)

	turn := `{"entries":[{"role":"user","content":"Where to?"}],"state":{"step":1}}`
	post := httptest.NewRequest(http.MethodPost, "http://localhost/v1/sessions/trip/commits", strings.NewReader(turn))
	post.Header.Set("If-Match", w.Header().Get("ETag"))
	w = httptest.NewRecorder()
	srv.ServeHTTP(w, post)
	fmt.Println(w.Code)

	srv.EndStreams()
	fmt.Println(srv.Close())
	// Output:
	// 201
	// 200
	// <nil>
}

// A server runs the retention policy of its store once a day, until its context is done.
func ExampleServer_Retain() {
	ctx := context.Background()
	st, err := coppice.Open(ctx, "mem:", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	srv.Retain(ctx, 24*time.Hour, func(d time.Duration) <-chan time.Time {
		fmt.Println("the next look is after", d) // time.After waits so long
		cancel()
		return nil
	})
	fmt.Println(srv.Close())
	// Output:
	// the next look is after 24h0m0s
	// <nil>
}

// A request that Go's HTTP server refuses without calling a handler is answered with a problem document, too.
func ExampleListen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	h := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	served := make(chan error)
	go func() { served <- h.Serve(server.Listen(h, l, nil)) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprint(c, "GET /v1/sessions HTTP/1.1\r\n\r\n") // without a Host
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.StatusCode, answer.Header.Get("Content-Type"))
	_ = answer.Body.Close()
	_ = h.Close()
	fmt.Println(<-served)
	// Output:
	// 400 application/problem+json
	// http: Server closed
}

// The description of the API is what clients are generated from.
func ExampleServer_Description() {
	st, err := coppice.Open(context.Background(), "mem:", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		panic(err)
	}
	defer func() { _ = srv.Close() }()
	raw, err := srv.Description()
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(string(raw), `"openapi": "3.1.0"`))
	// Output: true
}

// A line of a token file is the SHA-256 of a token, a tenant and the rights. Who starts the server gets in by a link.
func ExampleParseTokens() {
	const file = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b - read,write\n"
	tokens, err := server.ParseTokens(strings.NewReader(file))
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/v1/sessions", nil)
	r.Header.Set("Authorization", "Bearer secret")
	may, err := tokens.Authorize(r)
	fmt.Println(may.Rights, err)
	r.Header.Set("Authorization", "Bearer guess")
	_, err = tokens.Authorize(r)
	fmt.Println(errors.Is(err, server.ErrUnauthorized))
	fmt.Println(len("http://localhost:7070/login?code=" + tokens.Link()))
	// Output:
	// read,write,delete <nil>
	// true
	// 59
}
