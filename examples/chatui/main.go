// Chatui is the backend of a chat page: it lists conversations, shows a page of one with its versions, edits a message
// into a new branch, switches between versions, and streams events.
//
//	go run ./examples/chatui [STORE]     # then GET http://127.0.0.1:8765/
//
// It is a sketch: no users, no rights. It listens on the loopback address only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	_ "github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

func main() {
	url := "mem:"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	store, err := coppice.Open(context.Background(), url, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8765", Handler: handler(store), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

const shown = 40 // entries on the screen

// Message is one entry of the page.
type Message struct {
	ID, Role, Text, Label string
	Version, Versions     int // ‹Version/Versions›
}

func handler(store *coppice.Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { list(w, r, store) })
	mux.HandleFunc("GET /{id}", reading(store, page))
	mux.HandleFunc("GET /{id}/events", reading(store, events))
	mux.HandleFunc("POST /{id}/edit/{entry}",
		writing(store, func(r *http.Request, s *coppice.Session) (coppice.Receipt, error) {
			return s.Edit(r.Context(), r.PathValue("entry"), entry.User(r.FormValue("text"))) // makes a sibling
		}))
	mux.HandleFunc("POST /{id}/switch/{entry}",
		writing(store, func(r *http.Request, s *coppice.Session) (coppice.Receipt, error) {
			return s.Switch(r.Context(), r.PathValue("entry")) // ‹1/2›
		}))
	mux.HandleFunc("POST /{id}/label/{entry}",
		writing(store, func(r *http.Request, s *coppice.Session) (coppice.Receipt, error) {
			return s.Label(r.Context(), r.PathValue("entry"), r.FormValue("text"))
		}))
	return mux
}

func list(w http.ResponseWriter, r *http.Request, store *coppice.Store) {
	type item struct{ ID, Title, Preview, Cursor string }
	var items []item
	for sum, err := range store.List(r.Context(), coppice.ListOptions{Limit: 50, After: r.FormValue("after")}) {
		if err != nil {
			fail(w, err)
			return
		}
		items = append(items, item{sum.ID, sum.Title, sum.Preview, sum.Cursor})
	}
	reply(w, items)
}

// page reads the visible part: the tree without bodies, then the bodies of the last entries.
func page(w http.ResponseWriter, r *http.Request, s *coppice.Session) error {
	tree, err := s.Tree(r.Context())
	if err != nil {
		return err
	}
	messages := make([]Message, 0, shown)
	for e, err := range s.Page(r.Context(), coppice.Page{Reverse: true, Limit: shown}) {
		if err != nil {
			return err
		}
		m, ok := e.Message()
		if !ok {
			continue
		}
		versions, at := tree.Siblings(e.ID)
		n, _ := tree.Node(e.ID)
		messages = append(messages, Message{e.ID, m.Role, m.Text(), n.Label, at + 1, len(versions)})
	}
	slices.Reverse(messages)
	reply(w, messages)
	return nil
}

// events streams commits as server-sent events; a browser that reconnects continues after the last one.
func events(w http.ResponseWriter, r *http.Request, s *coppice.Session) error {
	last, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		last = s.Head().Seq
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for ch, err := range s.Watch(r.Context(), last) {
		if err != nil {
			return err
		}
		data, err := json.Marshal(ch.Commit)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", ch.Commit.Seq, data); err != nil {
			return nil // the browser disconnected
		}
		if err := flush.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func reading(
	store *coppice.Store, f func(http.ResponseWriter, *http.Request, *coppice.Session) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := store.Open(r.Context(), r.PathValue("id"), &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			fail(w, err)
			return
		}
		if err := errors.Join(f(w, r, s), s.Close()); err != nil {
			fail(w, err)
		}
	}
}

func writing(store *coppice.Store, f func(*http.Request, *coppice.Session) (coppice.Receipt, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := store.Open(r.Context(), r.PathValue("id"), &coppice.SessionOptions{KeepBoth: true})
		if err != nil {
			fail(w, err)
			return
		}
		receipt, err := f(r, s)
		if err = errors.Join(err, s.Close()); err != nil {
			fail(w, err)
			return
		}
		reply(w, receipt)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Print(err)
	}
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	case errors.Is(err, coppice.ErrConflict), errors.Is(err, coppice.ErrFenced):
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}
