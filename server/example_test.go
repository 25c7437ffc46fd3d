package server_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

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
		log.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		log.Fatal(err)
	}
	put := httptest.NewRequest("PUT", "http://localhost/v1/sessions/trip", strings.NewReader(`{"title":"A trip"}`))
	put.Header.Set("If-None-Match", "*")
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, put)
	fmt.Println(w.Code)

	turn := `{"entries":[{"role":"user","content":"Where to?"}],"state":{"step":1}}`
	post := httptest.NewRequest("POST", "http://localhost/v1/sessions/trip/commits", strings.NewReader(turn))
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

// The description of the API is what clients are generated from.
func ExampleServer_Description() {
	st, err := coppice.Open(context.Background(), "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	raw, err := srv.Description()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(string(raw), `"openapi": "3.1.0"`))
	// Output: true
}
