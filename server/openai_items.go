package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// newConversation is the body that creates a conversation.
type newConversation struct {
	Items    []json.RawMessage `json:"items,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// newItems is the body that adds items.
type newItems struct {
	Items []json.RawMessage `json:"items"`
}

// bodyOf returns the type of a body.
func bodyOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// newSalt returns what makes the ids of a request other ones than those of an equal request.
func newSalt() string {
	return rand.Text()[:16] //nolint:forbidigo // no other request may make the same ids
}

// batch is the items of a request. The key of its commit makes their ids: a repeat of the commit has the same ones.
type batch struct {
	items []json.RawMessage
	key   string
	own   bool // items keep ids that they have
}

// check returns an error unless each item is an object.
func (b batch) check() error {
	for i, item := range b.items {
		if len(item) == 0 || item[0] != '{' {
			return badInput(fmt.Sprintf("items[%d]", i), errors.New("an item is a JSON object"))
		}
	}
	return nil
}

// name returns the part of an id that is the item's own; -1 = that of the conversation.
func (b batch) name(i int) string {
	sum := sha256.Sum256([]byte(b.key + " " + strconv.Itoa(i)))
	return hex.EncodeToString(sum[:24])
}

// id returns the id of an item.
func (b batch) id(i int) string {
	if own := rawjson.Text(rawjson.Field(b.items[i], "id")); own != "" && b.own {
		return own
	}
	kind := rawjson.Text(rawjson.Field(b.items[i], "type"))
	begin := map[string]string{
		"": "msg", "message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs",
	}[kind]
	if begin == "" {
		begin = "item"
	}
	return begin + "_" + b.name(i)
}

// drafts returns the entries of the items, which are stored as they were sent.
func (b batch) drafts() []transcript.Draft {
	drafts := make([]transcript.Draft, len(b.items))
	for i, item := range b.items {
		drafts[i] = entry.Message(item)
		drafts[i].ID = b.id(i)
	}
	return drafts
}

// itemList is a page of items.
type itemList struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`

	bytes int // of Data
}

func newItemList() itemList { return itemList{Object: "list", Data: []json.RawMessage{}} }

// add adds an item.
func (l *itemList) add(id string, message []byte) {
	item := shownItem(id, message)
	l.Data = append(l.Data, item)
	l.bytes += len(item)
	if l.FirstID == nil {
		l.FirstID = &id
	}
	l.LastID = &id
}

// shownItem returns the item of a message: with its id, and a text as a part of its content.
func shownItem(id string, message []byte) json.RawMessage {
	item := rawjson.WithField(message, "id", rawjson.AppendString(nil, id))
	role := rawjson.Text(rawjson.Field(item, "role"))
	if rawjson.Field(item, "type") == nil && role != "" {
		item = rawjson.WithField(item, "type", []byte(`"message"`))
	}
	if rawjson.Text(rawjson.Field(item, "type")) != "message" {
		return item
	}
	if rawjson.Field(item, "status") == nil {
		item = rawjson.WithField(item, "status", []byte(`"completed"`))
	}
	if text := rawjson.Field(item, "content"); rawjson.IsString(text) {
		part := rawjson.Object("type", []byte(`"input_text"`), "text", text)
		if role == "assistant" {
			part = rawjson.Object("type", []byte(`"output_text"`), "text", text, "annotations", []byte("[]"))
		}
		item = rawjson.WithField(item, "content", rawjson.List([][]byte{part}))
	}
	return item
}

// addItems stores items in one commit. A retry of a client is made with the key of the first request, whose answer it
// gets, if that is among the last commits.
func (s *Server) addItems(ctx context.Context, q *request) (answer, error) {
	var body newItems
	mark := hashed(q.r)
	if err := decode(q.r, &body); err != nil {
		return answer{}, err
	}
	b := batch{items: body.Items, own: true}
	if err := b.check(); err != nil {
		return answer{}, err
	}
	if len(b.items) == 0 {
		return read(ctx, q, func(*coppice.Session) (answer, error) { return answer{doc: newItemList()}, nil })
	}
	leave, err := s.equals.wait(ctx, equal{writerKey{q.on.Store, q.id}, mark()})
	if err != nil {
		return answer{}, err
	}
	defer leave()
	if isRetry(q.r) {
		if b.key, err = earlier(ctx, q, mark()); err != nil {
			return answer{}, err
		}
	}
	if b.key == "" {
		b.key = keyOf(mark(), newSalt())
	}
	err = s.addBatch(ctx, q, b)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, coppice.ErrKeyReused) {
		b.own = false // the conversation has, or had, an item with one of these ids
		err = s.addBatch(ctx, q, b)
	}
	if err != nil {
		return answer{}, err
	}
	list := newItemList()
	for i, item := range b.items {
		list.add(b.id(i), item)
	}
	return answer{doc: list}, nil
}

func (s *Server) addBatch(ctx context.Context, q *request, b batch) error {
	t := coppice.Turn{Key: b.key, Base: coppice.Newest, Entries: b.drafts()}
	_, err := s.writeTurn(ctx, q, func(ctx context.Context, h *coppice.Session) (coppice.Receipt, error) {
		return s.commitOn(ctx, h, t, coppice.Newest)
	})
	return err
}

// maxItemBytes bounds a page of items: the item with which it is longer is its last one.
const maxItemBytes = 4 << 20

// listItems answers with a page of the items on the path to the head. Without a limit it is as long as a page of
// entries, for the clients of OpenAI ask for the rest in any case.
func (s *Server) listItems(ctx context.Context, q *request) (answer, error) {
	query := q.r.URL.Query()
	order, limit := query.Get("order"), maxPage
	if order != "" && order != "asc" && order != "desc" {
		return answer{}, badInput("order", fmt.Errorf("%.40q: want asc or desc", order))
	}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return answer{}, badInput("limit", fmt.Errorf("%.40q: want 1 to %d", text, maxPage))
		}
		limit = n
	}
	p := coppice.Page{Reverse: order != "asc", After: query.Get("after"), Limit: limit + 1}
	return s.readTree(ctx, q, func(h *coppice.Session) (answer, error) {
		list := newItemList()
		for n := p.Limit; n == p.Limit && !list.HasMore; {
			n = 0
			for e, err := range h.Page(ctx, p) {
				if p.After != "" && errors.Is(err, fs.ErrNotExist) {
					return answer{}, badInput("after", err)
				}
				if err != nil {
					return answer{}, err
				}
				n++
				p.After = e.ID
				message := messageOf(e)
				if message == nil {
					continue
				}
				if len(list.Data) == limit || list.bytes >= maxItemBytes {
					list.HasMore = true
					break
				}
				list.add(e.ID, message)
			}
		}
		return answer{doc: list}, nil
	})
}

// messageOf returns the message of an entry that is an item; nil = it is none.
func messageOf(e transcript.Entry) []byte {
	if e.Type != "message" || e.Hidden {
		return nil
	}
	message := rawjson.Field(e.Raw, "message")
	if len(message) == 0 || message[0] != '{' {
		return nil
	}
	return message
}

// findItem returns the message of an item, which the path of the request names.
func findItem(ctx context.Context, q *request, h *coppice.Session) (message []byte, err error) {
	item := q.r.PathValue("item")
	e, err := h.Entry(ctx, item)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && e.ID == item {
		message = messageOf(e)
	}
	if message == nil {
		return nil, noItem(q.id, item)
	}
	return message, nil
}

func (s *Server) getItem(ctx context.Context, q *request) (answer, error) {
	return s.readTree(ctx, q, func(h *coppice.Session) (answer, error) {
		message, err := findItem(ctx, q, h)
		if err != nil {
			return answer{}, err
		}
		return answer{doc: shownItem(q.r.PathValue("item"), message)}, nil
	})
}

// deleteItem hides the entry of an item. Of several requests at once one deletes it, and to the others it does not
// exist: clients that each take the last item take different ones. The retry of a client gets the answer of the first
// request.
func (s *Server) deleteItem(ctx context.Context, q *request) (answer, error) {
	item := q.r.PathValue("item")
	sum := sha256.Sum256([]byte("delete " + item))
	mark := markOf(sum[:])
	leave, err := s.equals.wait(ctx, equal{writerKey{q.on.Store, q.id}, mark})
	if err != nil {
		return answer{}, err
	}
	defer leave()
	key := ""
	if isRetry(q.r) {
		if key, err = earlier(ctx, q, mark); err != nil {
			return answer{}, err
		}
	}
	var doc conversation
	_, err = read(ctx, q, func(h *coppice.Session) (answer, error) {
		doc = conversationOf(h)
		_, err := findItem(ctx, q, h)
		return answer{}, err
	})
	if key != "" && errors.Is(err, fs.ErrNotExist) && q.found {
		return answer{doc: doc}, nil
	}
	if err != nil {
		return answer{}, err
	}
	key = keyOf(mark, newSalt())
	err = s.write(ctx, q, func(ctx context.Context, h *coppice.Session) error {
		r, err := h.Hide(ctx, item, coppice.WithBase(coppice.Newest), coppice.WithKey(key))
		if err != nil {
			r, err = s.settled(ctx, h, err)
		}
		if err == nil && r.Entries == 0 { // another request has hidden it
			err = noItem(q.id, item)
		}
		return err
	})
	return answer{doc: doc}, err
}
