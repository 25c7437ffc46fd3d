package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/server"
)

const (
	conversations = "/openai/v1/conversations"
	jsonType      = "Content-Type: application/json"
	retried       = "X-Stainless-Retry-Count: 1"
)

// converse creates a conversation and returns its path.
func (s *site) converse(t testing.TB, body string) string {
	t.Helper()
	doc := s.do("POST", conversations, body, jsonType).want(t, 200)
	id := doc["id"].(string)
	if doc["object"] != "conversation" || !strings.HasPrefix(id, "conv_") || doc["created_at"].(float64) < 1 {
		t.Errorf("%v", doc)
	}
	return conversations + "/" + id
}

// told is a body of items, each a user's message.
func told(texts ...string) string {
	var items []string
	for _, text := range texts {
		items = append(items, fmt.Sprintf(`{"role":"user","content":%q}`, text))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

// items returns the ids and texts of a page of items, and whether others follow.
func itemsOf(t testing.TB, r reply) (ids, texts []string, more bool) {
	t.Helper()
	doc := r.want(t, 200)
	for _, v := range doc["data"].([]any) {
		item := v.(map[string]any)
		ids = append(ids, item["id"].(string))
		texts = append(texts, item["content"].([]any)[0].(map[string]any)["text"].(string))
	}
	if n := len(ids); n > 0 && (doc["first_id"] != ids[0] || doc["last_id"] != ids[n-1]) || doc["object"] != "list" {
		t.Errorf("%s", r.body)
	}
	return ids, texts, doc["has_more"].(bool)
}

func wantItems(t testing.TB, r reply, want ...string) (ids []string) {
	t.Helper()
	ids, texts, _ := itemsOf(t, r)
	if !slices.Equal(texts, want) {
		t.Errorf("items %q, want %q", texts, want)
	}
	return ids
}

// Items are stored as they were sent, come back as OpenAI has them, and are entries like others.
func TestOpenAIItems(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		at := s.converse(t, `{"items":[{"role":"user","content":"weather?"}],"metadata":{"team":"blue"}}`)
		call := `{"type":"function_call","id":"fc_1","call_id":"c1","name":"weather","arguments":"{\"q\":1}"}`
		r := s.do("POST", at+"/items?include=reasoning.encrypted_content", `{"items":[`+
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"xyz"},`+call+`,`+
			`{"type":"function_call_output","call_id":"c1","output":"sunshine"},`+
			`{"role":"assistant","content":"Sunny."}]}`, jsonType)
		r.want(t, 200)
		got := s.do("GET", at+"/items?order=asc", "")
		data := got.want(t, 200)["data"].([]any)
		ids := make([]string, len(data))
		for i, v := range data {
			ids[i] = v.(map[string]any)["id"].(string)
		}
		begins := []string{"msg_", "rs_1", "fc_1", "fco_", "msg_"}
		if len(ids) != 5 || !slices.EqualFunc(ids, begins, strings.HasPrefix) {
			t.Fatalf("%s", got.body)
		}
		want := fmt.Sprintf(`{"object":"list","data":[`+
			`{"role":"user","content":[{"type":"input_text","text":"weather?"}],"id":%q,"type":"message",`+
			`"status":"completed"},`+
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"xyz"},`+call+`,`+
			`{"type":"function_call_output","call_id":"c1","output":"sunshine","id":%q},`+
			`{"role":"assistant","content":[{"type":"output_text","text":"Sunny.","annotations":[]}],"id":%q,`+
			`"type":"message","status":"completed"}],"first_id":%q,"last_id":%q,"has_more":false}`+"\n",
			ids[0], ids[3], ids[4], ids[0], ids[4])
		if string(got.body) != want {
			t.Errorf("got  %s\nwant %s", got.body, want)
		}
		item := s.do("GET", at+"/items/"+ids[2], "")
		if item.want(t, 200); string(item.body) != call+"\n" {
			t.Errorf("%s", item.body)
		}
		session := "/v1/sessions/" + strings.TrimPrefix(at, conversations+"/")
		back := s.do("GET", session+"/resume", "")
		if !strings.Contains(string(back.body), `"context":[{"role":"user","content":"weather?"},`) {
			t.Errorf("resume: %s", back.body)
		}
		if r := s.do("GET", "/v1/search?q=sunshine", ""); !strings.Contains(string(r.body), ids[3]) {
			t.Errorf("search: %s", r.body)
		}
		if r := s.do("GET", session+"/rows", ""); !strings.Contains(string(r.body), ids[1]) {
			t.Errorf("rows: %s", r.body)
		}
		if n := len(s.do("GET", "/v1/sessions?meta.team=blue", "").want(t, 200)["sessions"].([]any)); n != 1 {
			t.Errorf("%d sessions of the team", n)
		}
	})
}

// Pages go in both directions, and every item comes once, also after items were deleted.
func TestOpenAIPages(t *testing.T) {
	s := newSite(t, "mem:")
	at := s.converse(t, `{}`)
	if ids := wantItems(t, s.do("GET", at+"/items", "")); ids != nil {
		t.Errorf("%v", ids)
	}
	ids := wantItems(t, s.do("POST", at+"/items", told("a", "b", "c", "d", "e"), jsonType), "a", "b", "c", "d", "e")
	wantItems(t, s.do("GET", at+"/items", ""), "e", "d", "c", "b", "a")
	wantItems(t, s.do("GET", at+"/items?limit=2", ""), "e", "d")
	wantItems(t, s.do("GET", at+"/items?limit=2&after="+ids[3], ""), "c", "b")
	wantItems(t, s.do("GET", at+"/items?limit=2&order=asc&after="+ids[0], ""), "b", "c")
	s.do("DELETE", at+"/items/"+ids[2], "").want(t, 200)
	s.do("DELETE", at+"/items/"+ids[4], "").want(t, 200)
	if _, texts, more := itemsOf(t, s.do("GET", at+"/items?limit=2", "")); !more || texts[0] != "d" || texts[1] != "b" {
		t.Errorf("%v, more %v", texts, more)
	}
	if _, texts, more := itemsOf(t, s.do("GET", at+"/items?limit=3", "")); more || texts[2] != "a" {
		t.Errorf("%v, more %v", texts, more)
	}
	s.do("GET", at+"/items/"+ids[4], "").want(t, 404)
	s.do("GET", at+"/items/"+ids[0][:10], "").want(t, 404) // a prefix is no id
	again := wantItems(t, s.do("POST", at+"/items", `{"items":[{"id":"`+ids[4]+`","role":"user","content":"e"}]}`,
		jsonType), "e")
	if again[0] == ids[4] {
		t.Error("an item that was deleted has its id again")
	}
	wantItems(t, s.do("GET", at+"/items?order=asc", ""), "a", "b", "d", "e")
}

// What a client sends again is stored once; what it sends twice, twice.
func TestOpenAIRetries(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		at := s.converse(t, `{"items":[]}`)
		first := s.do("POST", at+"/items", told("a", "b"), jsonType)
		ids := wantItems(t, first, "a", "b")
		again := s.do("POST", at+"/items", told("a", "b"), jsonType, retried)
		if string(again.body) != string(first.body) {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		wantItems(t, s.do("POST", at+"/items", told("c"), jsonType, retried), "c") // the first request did not arrive
		wantItems(t, s.do("POST", at+"/items", told("a", "b"), jsonType, "X-Stainless-Retry-Count: 0"), "a", "b")
		wantItems(t, s.do("GET", at+"/items?order=asc", ""), "a", "b", "c", "a", "b")
		named := `{"items":[{"id":"` + ids[0] + `","role":"user","content":"n"}]}`
		first = s.do("POST", at+"/items", named, jsonType)
		again = s.do("POST", at+"/items", named, jsonType, retried)
		if string(again.body) != string(first.body) {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		s.do("DELETE", at+"/items/"+ids[1], "").want(t, 200)
		s.do("DELETE", at+"/items/"+ids[1], "", retried).want(t, 200)
		s.do("DELETE", at+"/items/"+ids[1], "").want(t, 404)
		for i := range 14 { // with the named item and the deletion that is 16
			s.do("POST", at+"/items", told(fmt.Sprint(i)), jsonType).want(t, 200)
		}
		s.do("POST", at+"/items", named, jsonType, retried).want(t, 200)
		if ids, _, _ := itemsOf(t, s.do("GET", at+"/items", "")); len(ids) != 5+1+14-1 {
			t.Errorf("%d items", len(ids))
		}
		s.do("POST", at+"/items", told("14"), jsonType).want(t, 200)
		s.do("POST", at+"/items", named, jsonType, retried).want(t, 200)
		if ids, _, _ := itemsOf(t, s.do("GET", at+"/items", "")); len(ids) != 5+1+14-1+2 {
			t.Errorf("%d items", len(ids))
		}
		s.do("DELETE", at, "").want(t, 200)
		s.do("DELETE", at, "", retried).want(t, 200)
		s.do("DELETE", at, "").want(t, 404)
	})
}

// Clients that each take the last item, through two servers, take different ones.
func TestOpenAIAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		other := s
		if !strings.HasPrefix(url, "mem") {
			other = newSite(t, url)
		}
		at := s.converse(t, told("0", "1", "2", "3", "4", "5", "6", "7"))
		var mu sync.Mutex
		var wg sync.WaitGroup
		var taken []string
		for i := range 4 {
			on := []*site{s, other}[i%2]
			wg.Go(func() {
				for own := 0; own < 2; {
					r, err := on.try(t.Context(), "GET", at+"/items?limit=1", "")
					if err != nil {
						t.Error(err)
						return
					}
					ids, texts, _ := itemsOf(t, r)
					if len(ids) == 0 {
						t.Error("items are missing")
						return
					}
					r, err = on.try(t.Context(), "DELETE", at+"/items/"+ids[0], "")
					if err != nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusNotFound {
						t.Errorf("%v, %s", err, r.body)
						return
					}
					if r.StatusCode == http.StatusOK {
						own++
						mu.Lock()
						taken = append(taken, texts[0])
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if slices.Sort(taken); strings.Join(taken, "") != "01234567" {
			t.Errorf("taken %v", taken)
		}
		wantItems(t, s.do("GET", at+"/items", ""))
	})
}

// A request that is sent again while the first one is under way waits for it, and gets its answer.
func TestOpenAIRetryInFlight(t *testing.T) {
	s := newHeld(t)
	at := s.converse(t, `{}`)
	s.armed.Store(true)
	var wg sync.WaitGroup
	answers := make([]reply, 2)
	send := func(i int, headers ...string) {
		wg.Go(func() {
			var err error
			if answers[i], err = s.try(t.Context(), "POST", at+"/items", told("a"), headers...); err != nil {
				t.Error(err)
			}
		})
	}
	send(0)
	<-s.begun
	send(1, retried, "Watched: yes")
	<-s.asked
	close(s.goOn)
	wg.Wait()
	if ids := wantItems(t, answers[1], "a"); ids[0] != wantItems(t, answers[0], "a")[0] {
		t.Errorf("%s, then %s", answers[0].body, answers[1].body)
	}
	wantItems(t, s.do("GET", at+"/items", ""), "a")
}

// Metadata are those of the session, and are replaced as a whole.
func TestOpenAIMetadata(t *testing.T) {
	s := newSite(t, "mem:")
	at := s.converse(t, `{"metadata":{"team":"blue","a":"1"}}`)
	for body, want := range map[string]string{
		`{"metadata":{"team":"red"}}`: "map[team:red]", `{"metadata":{}}`: "map[]", `{"metadata":null}`: "map[]",
	} {
		if got := s.do("POST", at, body, jsonType).want(t, 200)["metadata"]; fmt.Sprint(got) != want {
			t.Errorf("%s: %v", body, got)
		}
		if got := s.do("GET", at, "").want(t, 200)["metadata"]; fmt.Sprint(got) != want {
			t.Errorf("%s, then %v", body, got)
		}
	}
	if got := s.do("DELETE", at, "").want(t, 200); got["deleted"] != true || got["object"] != "conversation.deleted" {
		t.Errorf("%v", got)
	}
	s.do("GET", at+"/items", "").want(t, 404)
}

// Every refusal has the shape that OpenAI's clients read, and the rights and limits are those of other operations.
func TestOpenAIRefusals(t *testing.T) {
	s, _ := byTenant(t, withTokens(someTokens(t)), func(o *server.Options) {
		o.MaxBody = 1000
		o.Quota = func(string) server.Quota { return server.Quota{Sessions: 1} }
	})
	const mine, at = "Authorization: Bearer acme's", "/t/acme" + conversations
	doc := s.do("POST", at, told("a"), jsonType, mine).want(t, 200)
	own := at + "/" + doc["id"].(string)
	wantItems(t, s.do("GET", own+"/items", "", mine), "a")
	for _, c := range []struct {
		method, path, body, token string
		status                    int
		kind, code                string
	}{
		{"GET", own, "", "Accept: */*", 401, "authentication_error", "unauthorized"},
		{"GET", "/t/other" + conversations + "/x", "", mine, 403, "permission_error", "permission"},
		{"DELETE", own, "", "Authorization: Bearer reader", 403, "permission_error", "permission"},
		{"GET", at + "/conv_none", "", mine, 404, "invalid_request_error", "not-found"},
		{"GET", own + "/items/none", "", mine, 404, "invalid_request_error", "no-item"},
		{"DELETE", own + "/items/none", "", mine, 404, "invalid_request_error", "no-item"},
		{"GET", own + "/other", "", mine, 404, "invalid_request_error", "not-found"},
		{"PUT", own, "", mine, 405, "invalid_request_error", "method"},
		{"GET", own + "/items?limit=0", "", mine, 400, "invalid_request_error", "usage"},
		{"GET", own + "/items?order=up", "", mine, 400, "invalid_request_error", "usage"},
		{"GET", own + "/items?after=none", "", mine, 400, "invalid_request_error", "usage"},
		{"GET", own + "/items?page=1", "", mine, 400, "invalid_request_error", "usage"},
		{"POST", own + "/items", `{}`, mine, 400, "invalid_request_error", "usage"},
		{"POST", own + "/items", `{"items":["x"]}`, mine, 400, "invalid_request_error", "usage"},
		{"POST", own + "/items", told(strings.Repeat("x", 1000)), mine, 413, "invalid_request_error", "too-large"},
		{"POST", own, `{"metadata":{"a":1}}`, mine, 400, "invalid_request_error", "usage"},
		{"POST", at, `{}`, mine, 507, "insufficient_quota", "quota"},
	} {
		r := s.do(c.method, c.path, c.body, c.token, jsonType)
		doc, _ := r.want(t, c.status)["error"].(map[string]any)
		if doc["type"] != c.kind || doc["code"] != c.code || doc["message"] == "" || doc["param"] != nil ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %s", c.method, c.path, r.body)
		}
	}
	wantItems(t, s.do("GET", own+"/items", "", mine), "a")
}

// A token for the sessions with a value in their metadata makes conversations that have it.
func TestOpenAINarrowed(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) {
		st := o.Store
		o.Authorize = func(r *http.Request) (server.Access, error) {
			a := server.Access{Store: st, Rights: server.Read | server.Write | server.Delete}
			if user := r.Header.Get("Authorization"); user != "" {
				a.Only = server.Only{Key: "user", Value: user}
			}
			return a, nil
		}
	})
	const ann, bob = "Authorization: ann", "Authorization: bob"
	id := s.do("POST", conversations, told("a"), jsonType, ann).want(t, 200)["id"].(string)
	at := conversations + "/" + id
	wantItems(t, s.do("GET", at+"/items", "", ann), "a")
	s.do("GET", at+"/items", "", bob).want(t, 403)
	s.do("POST", at, `{"metadata":{"user":"bob"}}`, jsonType, ann).want(t, 403)
	got := s.do("POST", at, `{"metadata":{"k":"v"}}`, jsonType, ann).want(t, 200)["metadata"]
	if fmt.Sprint(got) != "map[k:v user:ann]" {
		t.Errorf("%v", got)
	}
	h, err := s.st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if meta := h.Info().Meta; meta["user"] != "ann" || meta["k"] != "v" {
		t.Errorf("%v", meta)
	}
}
