package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// schema is the part of JSON Schema that the description uses. A keyword that is not here fails the suite.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"` // a name or a list of names; nil = any value
	Format      string             `json:"format"`
	MediaType   string             `json:"contentMediaType"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	Enum        []any              `json:"enum"`
	Default     any                `json:"default"`
	AnyOf       []*schema          `json:"anyOf"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	MinLength   *int               `json:"minLength"`
	MaxLength   *int               `json:"maxLength"`
	MinItems    *int               `json:"minItems"`
	MaxItems    *int               `json:"maxItems"`
}

// parameter is one of an operation.
type parameter struct {
	In, Name    string
	Description string
	Required    bool
	Explode     *bool
	Schema      *schema
}

// media is what a body has, by its media type.
type media struct {
	Schema *schema
}

// response is an answer of an operation, or the name of one that operations share.
type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
	Headers     map[string]any
}

// described is an operation as the description has it.
type described struct {
	OperationID, Summary, Description string
	Parameters                        []parameter
	RequestBody                       *struct {
		Required bool
		Content  map[string]media
	}
	Responses map[string]*response

	method, path string
}

// statuses returns the statuses that an operation has, in order.
func (d *described) statuses(t testing.TB) (all []int) {
	for text := range d.Responses {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", d.OperationID, err)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// description is docs/openapi.json.
type description struct {
	schemas    map[string]*schema
	operations []*described // by id
}

// readDescription reads docs/openapi.json, which TestDescription compares with what the server returns.
func readDescription(t testing.TB) *description {
	t.Helper()
	raw, err := os.ReadFile("../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI    string
		Info       any
		Components struct {
			Schemas   map[string]*schema
			Responses map[string]*response
		}
		Paths map[string]map[string]*described
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("the description has something that this suite does not know: %v", err)
	}
	d := &description{schemas: doc.Components.Schemas}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			op.method, op.path = strings.ToUpper(method), path
			for status, r := range op.Responses {
				if name, shared := strings.CutPrefix(r.Ref, "#/components/responses/"); shared {
					op.Responses[status] = doc.Components.Responses[name]
				}
			}
			d.operations = append(d.operations, op)
		}
	}
	slices.SortFunc(d.operations, func(a, b *described) int { return strings.Compare(a.OperationID, b.OperationID) })
	if len(d.operations) < 30 {
		t.Fatalf("%d operations", len(d.operations))
	}
	return d
}

// operation returns the operation with an id.
func (d *description) operation(t testing.TB, id string) *described {
	for _, op := range d.operations {
		if op.OperationID == id {
			return op
		}
	}
	t.Fatalf("no operation %s", id)
	return nil
}

// faults returns what is wrong with an answer: an undocumented status or media type, or a body that is not as in its
// schema.
func (d *description) faults(op *described, r reply) error {
	documented, ok := op.Responses[strconv.Itoa(r.StatusCode)]
	if !ok {
		return fmt.Errorf("status %d is not documented: %.300s", r.StatusCode, r.body)
	}
	if len(documented.Content) == 0 || r.Request.Method == http.MethodHead {
		if len(r.body) > 0 {
			return fmt.Errorf("status %d has a body: %.300s", r.StatusCode, r.body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type %q: %w", r.Header.Get("Content-Type"), err)
	}
	m, ok := documented.Content[kind]
	if !ok {
		return fmt.Errorf("media type %s is not documented for %d", kind, r.StatusCode)
	}
	switch {
	case kind == "application/problem+json":
		return d.problem(m.Schema, r)
	case kind == "application/json":
		return d.document(m.Schema, r.body)
	case kind == "application/x-ndjson":
		return lines(r.body)
	case m.Schema != nil:
		return fmt.Errorf("a schema for %s", kind)
	}
	return nil
}

// problem checks an error.
func (d *description) problem(s *schema, r reply) error {
	if err := d.document(s, r.body); err != nil {
		return err
	}
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal(r.body, &p); err != nil {
		return err
	}
	if p.Type != "about:blank" || p.Title == "" || p.Detail == "" || p.Code == "" || p.Status != r.StatusCode ||
		strings.ContainsAny(p.Detail, "\n\x00") {
		return fmt.Errorf("the problem lacks something, or says another status: %s", r.body)
	}
	return nil
}

// lines checks that every line is a JSON value.
func lines(body []byte) error {
	for n, line := range bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
		if len(line) > 0 && !json.Valid(line) {
			return fmt.Errorf("line %d is not JSON: %.100q", n, line)
		}
	}
	return nil
}

// document checks a JSON document.
func (d *description) document(s *schema, raw []byte) error {
	if s == nil {
		return fmt.Errorf("no schema for %.100s", raw)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("not JSON: %w: %.200q", err, raw)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more than one value: %.200q", raw)
	}
	if err := d.value(s, v, "$"); err != nil {
		return fmt.Errorf("%w in %.600s", err, raw)
	}
	return nil
}

// value checks a value at a place.
func (d *description) value(s *schema, v any, at string) error {
	if s.Ref != "" {
		to := d.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if to == nil {
			return fmt.Errorf("%s: no schema %s", at, s.Ref)
		}
		return d.value(to, v, at)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, s.Enum)
	}
	if s.Type == nil {
		return nil
	}
	kind := kindOf(v)
	if kinds := s.types(); !slices.Contains(kinds, kind) && (kind != "integer" || !slices.Contains(kinds, "number")) {
		return fmt.Errorf("%s: %s, want %v", at, kind, kinds)
	}
	switch v := v.(type) {
	case map[string]any:
		return d.object(s, v, at)
	case []any:
		if s.Items == nil {
			return fmt.Errorf("%s: an array without a schema of its items", at)
		}
		if n := len(v); s.MinItems != nil && n < *s.MinItems || s.MaxItems != nil && n > *s.MaxItems {
			return fmt.Errorf("%s: %d items", at, n)
		}
		for i, item := range v {
			if err := d.value(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case string:
		return s.text(v, at)
	case json.Number:
		n, err := v.Float64()
		if err != nil || s.Minimum != nil && n < *s.Minimum || s.Maximum != nil && n > *s.Maximum {
			return fmt.Errorf("%s: %s is out of range", at, v)
		}
	}
	return nil
}

// types returns the types that a schema allows.
func (s *schema) types() (names []string) {
	switch kind := s.Type.(type) {
	case string:
		names = append(names, kind)
	case []any:
		for _, k := range kind {
			names = append(names, fmt.Sprint(k))
		}
	}
	return names
}

func (d *description) object(s *schema, v map[string]any, at string) error {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: no %s", at, name)
		}
	}
	var others *schema
	if add := string(s.Additional); add != "" && add != "true" && add != "false" {
		if err := json.Unmarshal(s.Additional, &others); err != nil {
			return err
		}
	}
	for name, value := range v {
		p := s.Properties[name]
		switch {
		case p != nil:
		case others != nil:
			p = others
		case string(s.Additional) == "false":
			return fmt.Errorf("%s: %s is not described", at, name)
		default:
			continue
		}
		if err := d.value(p, value, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func (s *schema) text(v, at string) error {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
		return fmt.Errorf("%s: %d characters", at, n)
	}
	switch s.Format {
	case "", "binary", "byte", "uri":
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	default:
		return fmt.Errorf("%s: format %s is not known to this suite", at, s.Format)
	}
	return nil
}

// kindOf returns the JSON Schema type of a value.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer"
		}
		return "number"
	}
	return fmt.Sprintf("%T", v)
}

// What the suite accepts and what it refuses.
func TestSchemaIsStrict(t *testing.T) {
	d := &description{schemas: map[string]*schema{"Name": {Type: "string"}}}
	var s schema
	if err := json.Unmarshal([]byte(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{
		"a":{"type":"array","items":{"$ref":"#/components/schemas/Name"}},"n":{"type":"integer","minimum":0},
		"t":{"type":["string","null"],"format":"date-time"},"e":{"type":"string","enum":["x"]},"any":{},
		"m":{"type":"object","additionalProperties":{"type":"boolean"}}}}`), &s); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"a":["x"],"n":3,"t":null,"e":"x","any":[1],"m":{"q":true}}`: true, `{"a":[],"t":"2026-01-02T03:04:05.6Z"}`: true,
		`{}`: false, `{"a":null}`: false, `{"a":[1]}`: false, `{"a":[],"b":1}`: false, `{"a":[],"n":-1}`: false,
		`{"a":[],"n":1.5}`: false, `{"a":[],"n":"1"}`: false, `{"a":[],"t":"now"}`: false, `{"a":[],"e":"y"}`: false,
		`{"a":[],"m":{"q":1}}`: false, `[]`: false, `{"a":[]} 1`: false, `{`: false, ``: false,
	} {
		if err := d.document(&s, []byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
