package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// requester makes requests that the description allows, of what a session has: most of them succeed, and so they reach
// further than those that are refused.
type requester struct {
	d       *description
	entries []string // of sessions s and w
}

// words are values of members and parameters of a name, each of which is valid somewhere.
var words = map[string][]string{
	"at": {"seq:0", "seq:1", "head", "main", "t", "tag:t"}, "to": {"seq:0", "seq:1", "main", "trunk"},
	"a": {"seq:0", "seq:1"}, "b": {"main", "seq:2"}, "from": {""}, "path": {"all", ""}, "fold": {""},
	"name": {"trunk", "b", ""}, "branch": {"main", "trunk"}, "tag": {"t", "u", ""}, "id": {""},
	"If-Match": {"*"}, "If-None-Match": {"*"}, "Idempotency-Key": {"k1", "k2", "k3", ""}, "Coppice-Writer": {"me", ""},
	"Last-Event-ID": {"0", "1"}, "Range": {"bytes=0-9"}, "after": {"", "MQ", "MA"}, "before": {"", "MQ"},
	"seq":   {"0", "1"},
	"match": {`{"message.role":"user"}`}, "q": {"a", "hello"}, "search": {"", "a"}, "mark": {"", "a"},
	"sha256": {strings.Repeat("0", 64)}, "pointer": {"/n", ""}, "cwd": {"", "/w"}, "parent": {""}, "format": {""},
	"docs": {"d"}, "view": {""}, "since": {""}, "until": {""}, "meta": {"team=blue"}, "session": {"s"}, "key": {""},
	"entry": {}, "around": {}, "below": {"true"}, "original": {""}, "relation": {""}, "summary": {"in short"},
}

// of returns a text for a name.
func (q *requester) of(t *rapid.T, name string) string {
	list := words[name]
	if list == nil {
		list = []string{"x", "a b", ""}
	}
	switch name {
	case "at", "to", "from", "path", "entry", "around", "a", "b", "fold", "branch":
		list = append(append([]string{}, q.entries...), list...)
	}
	return rapid.SampledFrom(list).Draw(t, name)
}

// value returns a value that a schema allows.
func (q *requester) value(t *rapid.T, s *schema, name string, depth int) any {
	if s == nil {
		return q.any(t, name)
	}
	if s.Ref != "" {
		s = q.d.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if len(s.AnyOf) > 0 {
		return q.value(t, rapid.SampledFrom(s.AnyOf).Draw(t, name+" of"), name, depth)
	}
	if len(s.Enum) > 0 {
		return rapid.SampledFrom(s.Enum).Draw(t, name)
	}
	types := s.types()
	if len(types) == 0 {
		return q.any(t, name)
	}
	switch rapid.SampledFrom(types).Draw(t, name+" type") {
	case "boolean":
		return rapid.Bool().Draw(t, name)
	case "integer", "number":
		low, high := 0.0, 600.0
		if s.Minimum != nil {
			low = *s.Minimum
		}
		if s.Maximum != nil {
			high = min(high, *s.Maximum)
		}
		return rapid.IntRange(int(low), int(max(low, high))).Draw(t, name)
	case "string":
		return q.of(t, name)
	case "array":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, name+" items") {
			list = append(list, q.value(t, s.Items, name, depth+1))
		}
		return list
	case "object":
		return q.object(t, s, name, depth)
	}
	return nil
}

func (q *requester) object(t *rapid.T, s *schema, name string, depth int) map[string]any {
	doc := map[string]any{}
	required := strings.Join(s.Required, " ")
	for _, member := range sortedKeys(s.Properties) {
		if strings.Contains(required, member) || depth < 4 && rapid.IntRange(0, 2).Draw(t, "has "+member) == 0 {
			doc[member] = q.value(t, s.Properties[member], member, depth+1)
		}
	}
	var more schema
	if json.Unmarshal(s.Additional, &more) == nil && len(s.Properties) == 0 {
		doc["team"] = q.value(t, &more, name, depth+1)
	}
	return doc
}

// any returns JSON for a member of any type.
func (q *requester) any(t *rapid.T, name string) any {
	message := map[string]any{"role": rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"), "content": "a"}
	switch name {
	case "message", "partial":
		return message
	case "entries":
		switch rapid.IntRange(0, 3).Draw(t, "entry") {
		case 0:
			return map[string]any{"message": message, "original": map[string]any{"of": q.of(t, "name")}}
		case 1:
			return map[string]any{"type": "custom", "customType": "x", "parentId": q.of(t, "entry")}
		}
		return message
	}
	return rapid.SampledFrom([]any{nil, 1, "x", []any{}, map[string]any{"n": 1}}).Draw(t, name)
}

// request returns a request for an operation; loose: one of its parameters or its body is hostile.
func (q *requester) request(t *rapid.T, op *described, loose bool) attack {
	a := attack{op: op, path: op.path}
	query := url.Values{}
	spoilt := ""
	if n := len(op.Parameters); loose && n > 0 {
		spoilt = op.Parameters[rapid.IntRange(0, n-1).Draw(t, "spoilt")].Name
	}
	for _, p := range op.Parameters {
		always := p.Required || p.Name == spoilt || p.Name == "If-Match"
		if !always && rapid.IntRange(0, 3).Draw(t, "has "+p.Name) > 0 {
			continue
		}
		if p.Name == "wait" {
			continue // what is valid waits
		}
		v := fmt.Sprint(q.value(t, p.Schema, p.Name, 0))
		switch {
		case p.In == "path" && p.Name == "id":
			v = map[bool]string{true: "victim", false: "s"}[op.OperationID == "deleteSession"]
			if op.OperationID == "createSession" {
				v = "new" + strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "new"))
			}
		case p.Name == spoilt:
			v = drawText(t, p.Name)
		}
		switch p.In {
		case "path":
			a.path = strings.ReplaceAll(a.path, "{"+p.Name+"}", escape(v))
		case "query":
			query.Add(p.Name, v)
		case "header":
			if v = strings.Map(printable, v); v != "" {
				a.headers = append(a.headers, p.Name+": "+v)
			}
		}
	}
	if len(query) > 0 {
		a.path += "?" + query.Encode()
	}
	if op.RequestBody == nil {
		return a
	}
	if loose && spoilt == "" {
		a.body = drawBody(t, q.d, op)
		return a
	}
	if m, ok := op.RequestBody.Content["application/json"]; ok {
		raw, err := json.Marshal(q.value(t, m.Schema, "body", 0))
		if err != nil {
			t.Fatal(err)
		}
		a.body = string(raw)
	} else {
		a.body = strings.ReplaceAll(piFile, "from-pi", "imported")
	}
	return a
}

// describedRequests returns a check that requests which the description allows, and some with one wrong part, are
// answered as the description has it.
func describedRequests(t testing.TB, s *site, d *description) func(*rapid.T) {
	q := &requester{d: d}
	s.do("POST", "/v1/sessions/w/commits", hello("b"), "If-Match: *").want(t, 200) // what is written is written there
	for _, id := range []string{"s", "w"} {
		q.entries = append(q.entries, s.do("GET", "/v1/sessions/"+id+"/entries", "").ids(t, "entries", "id")...)
	}
	return func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			op := rapid.SampledFrom(d.operations).Draw(t, "operation")
			a := q.request(t, op, rapid.IntRange(0, 4).Draw(t, "loose") == 0)
			if err := s.fire(d, a); err != nil {
				t.Fatalf("%s %s %.300q %.500q: %v", op.method, a.path, a.headers, a.body, err)
			}
		}
	}
}

// Requests that are made of the description are answered as it has it: no error of the server's own, no status, media
// type or member that it does not have, and none without an answer. For longer: go test ./server -run
// TestDescribedRequests -timeout 1h -rapid.checks=10000.
func TestDescribedRequests(t *testing.T) {
	d := readDescription(t)
	onEach(t, func(t *testing.T, url string) {
		s := besieged(t, url)
		defer s.intact(t)
		rapid.Check(t, describedRequests(t, s, d))
	})
}

// FuzzDescribedRequests is TestDescribedRequests with what the fuzzer draws.
func FuzzDescribedRequests(f *testing.F) {
	d := readDescription(f)
	s := besieged(f, "mem:")
	f.Fuzz(rapid.MakeFuzz(describedRequests(f, s, d)))
}
