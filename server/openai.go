package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	coppice "github.com/coppice-go/coppice"
)

// openAIPath begins the paths of OpenAI's Conversations API, in which a conversation is a session and an item an entry.
// OpenAI describes it; docs/http.md has what differs.
const openAIPath = "/openai/"

const (
	conversationsPath = openAIPath + "v1/conversations"
	conversationPath  = conversationsPath + "/{id}"
	itemsPath         = conversationPath + "/items"
	itemPath          = itemsPath + "/{item}"
)

func (s *Server) serveOpenAI() {
	s.serveForeign(operation{
		method: "POST", path: conversationsPath, id: "openaiCreate", creates: true, narrows: true,
		body: bodyOf[newConversation](), size: sizeTurn, condition: always,
	}, nil, s.createConversation)
	s.serveForeign(operation{
		method: "GET", path: conversationPath, id: "openaiGet",
	}, nil, s.getConversation)
	s.serveForeign(operation{
		method: "POST", path: conversationPath, id: "openaiUpdate", body: bodyOf[newMetadata](),
		size: sizeNote,
	}, nil, s.updateConversation)
	s.serveForeign(operation{
		method: "DELETE", path: conversationPath, id: "openaiDelete",
	}, nil, s.deleteConversation)
	s.serveForeign(operation{
		method: "POST", path: itemsPath, id: "openaiAdd", body: bodyOf[newItems](), size: sizeTurn,
	}, included, s.addItems)
	s.serveForeign(operation{
		method: "GET", path: itemsPath, id: "openaiItems",
	}, append([]string{"order", "limit", "after"}, included...), s.listItems)
	s.serveForeign(operation{
		method: "GET", path: itemPath, id: "openaiItem",
	}, included, s.getItem)
	s.serveForeign(operation{
		method: "DELETE", path: itemPath, id: "openaiRemove",
	}, nil, s.deleteItem)
}

// included are the names under which clients ask for more of an item than they would get. Items are always whole.
var included = []string{"include", "include[]"}

// serveForeign registers an operation of another API than ours, which our description does not have. It passes the
// same door.
func (s *Server) serveForeign(
	op operation, query []string, f func(ctx context.Context, q *request) (answer, error),
) {
	op = op.ruled()
	d := &door{s: s, op: &op}
	for _, name := range query {
		d.parameters = append(d.parameters, &huma.Param{Name: name, In: "query"})
	}
	s.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		d.through(w, r, func() {
			var q request
			q.take(r, w)
			a, err := f(r.Context(), &q)
			s.finish(&op, &q, a, err)
		})
	})
}

// openAIError is an error as OpenAI's clients read it.
type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

// openAIFailure returns the document of a problem, and sets its status and headers for OpenAI's clients: to these what
// was deleted does not exist, and a request that is over a quota is not worth sending again.
func openAIFailure(h http.Header, p *problem) (doc openAIError) {
	h.Set("Content-Type", "application/json")
	doc.Error.Message, doc.Error.Code, doc.Error.Type = p.Detail, p.Code, "invalid_request_error"
	switch p.Status {
	case http.StatusGone:
		p.Status = http.StatusNotFound
	case http.StatusInsufficientStorage:
		h.Set("X-Should-Retry", "false")
		doc.Error.Type = "insufficient_quota"
	case http.StatusUnauthorized:
		doc.Error.Type = "authentication_error"
	case http.StatusForbidden:
		doc.Error.Type = "permission_error"
	default:
		if p.Status >= http.StatusInternalServerError {
			doc.Error.Type = "server_error"
		}
	}
	return doc
}

// maxRetried is how many commits may have been made since a request that is sent again: it is looked for in these.
const maxRetried = 16

// isRetry reports whether an OpenAI client sends a request again. It sends no key with which to recognise it.
func isRetry(r *http.Request) bool {
	n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	return err == nil && n > 0
}

// keyOf returns the key of a commit by what identifies its request, and by its own salt.
func keyOf(mark, salt string) string { return "openai " + mark + " " + salt }

// markOf returns what identifies equal requests.
func markOf(sum []byte) string { return hex.EncodeToString(sum[:12]) }

// hashed makes the body of a request be hashed as it is read, and returns its mark, which is asked for after that.
func hashed(r *http.Request) (mark func() string) {
	sum := sha256.New()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, sum), r.Body}
	return func() string { return markOf(sum.Sum(nil)) }
}

// earlier returns the key of the newest of the last commits that an equal request has made; "" = there is none.
func earlier(ctx context.Context, q *request, mark string) (key string, err error) {
	_, err = read(ctx, q, func(h *coppice.Session) (answer, error) {
		n := 0
		for c, err := range h.Log(ctx, coppice.Target{}) {
			if err != nil {
				return answer{}, err
			}
			if strings.HasPrefix(c.Key, keyOf(mark, "")) {
				key = c.Key
				break
			}
			if n++; n == maxRetried {
				break
			}
		}
		return answer{}, nil
	})
	return key, err
}

// equal names the requests of a session that are equal.
type equal struct {
	session writerKey
	mark    string
}

// equals are the requests under way of which equal ones wait: one that is sent again may meet the first one.
type equals struct {
	mu   sync.Mutex
	busy map[equal]chan struct{} // closed at the end of the request
}

// wait waits until no equal request is under way, and registers this one. The caller must call leave at its end. The
// error is the cause of ctx.
func (e *equals) wait(ctx context.Context, key equal) (leave func(), err error) {
	for {
		e.mu.Lock()
		other := e.busy[key]
		if other == nil {
			own := make(chan struct{})
			e.busy[key] = own
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.busy, key)
				e.mu.Unlock()
				close(own)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other:
		}
	}
}

// newMetadata is the body that replaces the metadata of a conversation.
type newMetadata struct {
	Metadata map[string]string `json:"metadata"`
}

// conversation is a session as OpenAI's clients read it.
type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"` // Unix seconds
	Metadata  map[string]string `json:"metadata"`
}

// conversationOf returns the document of a session.
func conversationOf(h *coppice.Session) conversation {
	sum := h.Info()
	c := conversation{h.ID(), "conversation", sum.Created.Unix(), sum.Meta}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	return c
}

func (s *Server) createConversation(ctx context.Context, q *request) (answer, error) {
	var body newConversation
	if err := decode(q.r, &body); err != nil {
		return answer{}, err
	}
	salt := newSalt()
	b := batch{items: body.Items, key: keyOf("create", salt), own: true}
	if err := b.check(); err != nil {
		return answer{}, err
	}
	q.id = "conv_" + b.name(-1)
	var doc conversation
	n := birth{newSession: &newSession{Meta: body.Metadata}}
	_, err := s.firstCommit(ctx, &keyedWrite{request: *q}, n,
		func(ctx context.Context, h *coppice.Session) (r coppice.Receipt, err error) {
			t := coppice.Turn{Reason: "create", Key: b.key, Entries: b.drafts()}
			r, err = h.Commit(ctx, t)
			doc = conversationOf(h)
			return r, err
		})
	return answer{doc: doc}, err
}

func (s *Server) getConversation(ctx context.Context, q *request) (answer, error) {
	return read(ctx, q, func(h *coppice.Session) (answer, error) {
		return answer{doc: conversationOf(h)}, nil
	})
}

// updateConversation replaces the metadata, but for what the token demands of a session.
func (s *Server) updateConversation(ctx context.Context, q *request) (answer, error) {
	var body newMetadata
	if err := decode(q.r, &body); err != nil {
		return answer{}, err
	}
	if body.Metadata == nil {
		body.Metadata = map[string]string{}
	}
	if only := q.on.Only; only.Key != "" {
		if value, has := body.Metadata[only.Key]; has && value != only.Value {
			return answer{}, ErrForbidden
		}
		body.Metadata[only.Key] = only.Value
	}
	var doc conversation
	err := s.onNewest(ctx, q, func(ctx context.Context, h *coppice.Session) error {
		doc = conversationOf(h)
		change := map[string]*string{}
		for key := range doc.Metadata {
			change[key] = nil
		}
		for key, value := range body.Metadata {
			change[key] = &value
		}
		doc.Metadata = body.Metadata
		if len(change) == 0 {
			return nil
		}
		_, err := h.SetInfo(ctx, coppice.InfoChange{Meta: change}, coppice.WithBase(coppice.Newest))
		if err != nil {
			_, err = s.settled(ctx, h, err)
		}
		return err
	})
	return answer{doc: doc}, err
}

// deletedConversation is the answer to a deletion.
type deletedConversation struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) deleteConversation(ctx context.Context, q *request) (answer, error) {
	q.made = coppice.Newest
	_, err := s.remove(ctx, &deleteQuery{request: *q, ID: q.id})
	for n := 1; n < maxCreations && errors.Is(err, coppice.ErrConflict); n++ { // a commit came in between
		_, err = s.remove(ctx, &deleteQuery{request: *q, ID: q.id})
	}
	if errors.Is(err, coppice.ErrDeleted) && isRetry(q.r) {
		err = nil // by the request that is sent again
	}
	return answer{doc: deletedConversation{q.id, "conversation.deleted", true}}, err
}

// noItem is the error of an item that a conversation does not have.
func noItem(id, item string) error {
	return newProblem(http.StatusNotFound, "no-item", "",
		fmt.Errorf("conversation %.80s has no item %.80s: %w", id, item, fs.ErrNotExist))
}
