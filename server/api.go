package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/coppice-go/coppice/internal/api"
)

// maxPage bounds the items of a page.
const maxPage = 500

// bodySize is a limit of bodies. No limit is above Options.MaxBody, but for sizeFile.
type bodySize int

const (
	sizeEntry bodySize = iota // maxOne: one entry, or one text
	sizeNote                  // maxNote: names and flags
	sizeTurn                  // Options.MaxBody: many entries
	sizeFile                  // Options.MaxImport: what is spooled, and not held in memory
)

// Limits of bodies in bytes.
const (
	maxNote = 64 << 10
	maxOne  = 8 << 20
)

// limit returns the limit of the body, in bytes.
func (op *operation) limit(o *Options) int64 {
	return [...]int64{min(maxOne, o.MaxBody), min(maxNote, o.MaxBody), o.MaxBody, o.MaxImport}[op.size]
}

// operation describes an operation of the API. Responses in addition to those of every operation are listed in errors.
type operation struct {
	method, path, id, summary string
	text                      string       // description
	rule                                   // of rules
	ofServer                  bool         // of the server as a whole: tenants do not have it
	storeless                 bool         // reads no store: what fails with one cannot come
	creates                   bool         // a session
	mayCreate                 bool         // the session in its path, if there is none
	narrows                   bool         // heeds Access.Only itself, as to metadata
	widens                    bool         // reaches other sessions than the one in its path
	heavy                     bool         // may read every session: Options.MaxSearches at a time
	whole                     bool         // may read a session as a whole: maxWholes at a time
	meta, match               bool         // its query may have meta.KEY, match.PATH
	names                     bool         // its query or body names entries or commits, which may not exist
	errors                    []int        // statuses of problems
	types                     []string     // media types of the answer, if it is not JSON
	body                      reflect.Type // of the JSON body; nil = none
	size                      bodySize     // limit of the body
	condition                 condition    // of a write
	fleeting                  bool         // a write that stores nothing
	raw                       string       // media type of a body that is no JSON; "" = none
	lines                     bool         // the body may be lines of JSON too
	statuses                  []int        // of the answer, in addition to 200; if the first is 201 or 204, without it
}

// request is what the parameters of every operation embed. Parameters are fields of the struct that embeds it: huma
// does not look into fields of types that are not exported.
type request struct {
	r  *http.Request
	w  http.ResponseWriter
	on Access
	id string // of the session that the path names; "" = none

	made string // the commit on which a write was made

	found bool // that session exists: what else does not is what the rest of the request names
}

// Resolve takes the request over from the adapter.
func (q *request) Resolve(c huma.Context) []error {
	q.take(humago.Unwrap(c))
	return nil
}

// take takes the request over from the door.
func (q *request) take(r *http.Request, w http.ResponseWriter) {
	q.r, q.w, q.id = r, w, r.PathValue("id")
	seen := seenOf(r)
	q.on, q.made = seen.on, seen.made
}

// input is the parameters of an operation: a pointer to a struct that embeds request.
type input interface{ base() *request }

func (q *request) base() *request { return q }

// find notes that there is a session.
func (q *request) find() {
	q.found = true
	if t := seenOf(q.r).tenant; t != nil {
		t.kept.Store(true)
	}
}

// output is what an operation returns through huma, which leaves the writing to it.
type output struct{ Body func(huma.Context) }

// handle registers an operation. I are its parameters, O the document of its answer, as the description shows it.
func handle[I any, O any, P interface {
	*I
	input
}](s *Server, op operation, f func(ctx context.Context, in P) (answer, error)) {
	var none O
	op = op.ruled()
	d := s.operation(op, reflect.TypeOf(&none).Elem())
	door := &door{s: s, op: &op}
	d.Middlewares = huma.Middlewares{door.pass}
	defer s.describeBody(op)
	defer func() { door.parameters = s.described(op).Parameters }()
	huma.Register(s.api, d, func(ctx context.Context, in *I) (*output, error) {
		q := P(in).base()
		return &output{func(huma.Context) {
			a, err := f(ctx, P(in))
			s.finish(&op, q, a, err)
		}}, nil
	})
}

// finish sends the answer of an operation, or its error.
func (s *Server) finish(op *operation, q *request, a answer, err error) {
	seen := seenOf(q.r)
	seen.stored = err == nil && a.stores()
	if seen.outcome = http.StatusOK; err != nil {
		seen.outcome = problemOf(err).Status
	}
	if err == nil && q.r.Method == http.MethodHead {
		err = a.write(&headOnly{ResponseWriter: q.w}, q.r)
	} else if err == nil {
		err = a.write(q.w, q.r)
	}
	if err != nil {
		s.fail(q.w, q.r, seen.refused(op.absent(q, err)))
	}
}

// operation returns the description of an operation, and what is done before its handler.
func (s *Server) operation(op operation, doc reflect.Type) huma.Operation {
	d := huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Summary: op.summary, Description: op.text,
		Responses: map[string]*huma.Response{}, MaxBodyBytes: -1, BodyReadTimeout: -1,
	}
	reg := s.api.OpenAPI().Components.Schemas
	ok := &huma.Response{Content: map[string]*huma.MediaType{}}
	switch {
	case len(op.types) > 0:
		for _, t := range op.types {
			ok.Content[t] = &huma.MediaType{}
		}
	case doc.Kind() == reflect.Struct && doc.NumField() == 0:
		ok.Content = nil
	}
	if doc.Kind() != reflect.Struct || doc.NumField() > 0 {
		ok.Content["application/json"] = &huma.MediaType{Schema: reg.Schema(doc, true, op.id+"Answer")}
	}
	statuses := op.statuses
	if len(statuses) == 0 || statuses[0] != http.StatusCreated && statuses[0] != http.StatusNoContent {
		statuses = append([]int{http.StatusOK}, statuses...)
	}
	d.DefaultStatus = statuses[0] // huma documents it, and not 200
	for _, status := range statuses {
		same := *ok
		same.Description = http.StatusText(status)
		if status == http.StatusNotModified || status == http.StatusNoContent {
			same.Content = nil
		}
		d.Responses[strconv.Itoa(status)] = &same
	}
	s.problems(&d, op)
	return d
}

// describeBody adds the body to the description of an operation, after it was registered: huma would read and check it
// otherwise, with a copy of every message.
func (s *Server) describeBody(op operation) {
	doc := s.api.OpenAPI()
	var kind string
	var schema *huma.Schema
	switch {
	case op.body != nil:
		kind, schema = "application/json", doc.Components.Schemas.Schema(op.body, true, op.id+"Body")
	case op.raw != "":
		kind, schema = op.raw, &huma.Schema{Type: huma.TypeString, Format: "binary"}
	default:
		return
	}
	b := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{kind: {Schema: schema}}}
	if op.lines {
		b.Content[linesType] = &huma.MediaType{}
	}
	s.described(op).RequestBody = b
}

// described returns an operation that was registered, as the description has it.
func (s *Server) described(op operation) *huma.Operation {
	path := s.api.OpenAPI().Paths[op.path]
	for _, d := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
		if d != nil && d.OperationID == op.id {
			return d
		}
	}
	panic("operation " + op.id + " is not registered") // by handle
}

// problems adds the statuses of errors: those of the operation, and those that it shares with all of its kind.
func (s *Server) problems(d *huma.Operation, op operation) {
	all := append([]int{http.StatusMisdirectedRequest, http.StatusBadRequest}, op.errors...)
	if op.needs != 0 {
		all = append(all, http.StatusUnauthorized, http.StatusForbidden)
	}
	if op.needs != 0 && !op.storeless {
		all = append(all, http.StatusNotFound, http.StatusInternalServerError, http.StatusServiceUnavailable)
	}
	if strings.Contains(op.path, "{id}") {
		all = append(all, http.StatusGone)
	}
	if op.names {
		all = append(all, http.StatusUnprocessableEntity)
	}
	if op.body != nil || op.raw != "" {
		all = append(all, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	if op.needs&changes != 0 && !op.fleeting {
		all = append(all, http.StatusInsufficientStorage, http.StatusGatewayTimeout)
	}
	if op.condition != always {
		all = append(all, http.StatusPreconditionFailed)
		name, doc := op.condition.header()
		d.Parameters = append(d.Parameters, &huma.Param{
			Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	if op.condition != always && op.condition != ifMatchMay {
		all = append(all, http.StatusPreconditionRequired)
	}
	shared := s.api.OpenAPI().Components
	for _, status := range all {
		name := strings.ReplaceAll(http.StatusText(status), " ", "")
		shared.Responses[name] = &huma.Response{
			Description: http.StatusText(status),
			Content: map[string]*huma.MediaType{"application/problem+json": {
				Schema: shared.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem"),
			}},
		}
		d.Responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + name}
	}
}

// schemaName returns the name of a type in the description.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[api.Problem]() { // as the command line reports it, within documents
		return "ReportedProblem"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// describe registers the operations.
func (s *Server) describe() {
	reg := huma.NewMapRegistry("#/components/schemas/", schemaName)
	reg.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]())
	reg.RegisterTypeAlias(reflect.TypeFor[sentEntries](), reflect.TypeFor[[]any]())
	s.api = humago.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:    "3.1.0",
			Info:       &huma.Info{Title: "coppice", Version: "v1", Description: apiText},
			Components: &huma.Components{Schemas: reg, Responses: map[string]*huma.Response{}},
		},
		Formats: map[string]huma.Format{
			"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat,
		},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{func(_ huma.Context, _ string, v any) (any, error) { return ofHuma(v), nil }},
	})
	s.describeSessions()
	s.describeHold()
	s.describeCommits()
	s.describeMoves()
	s.describeEvents()
	s.describeEntries()
	s.describeQuery()
	s.describeDocs()
	s.describeHistory()
	s.describeRows()
	s.describeTransfer()
	s.describeErase()
	s.describeRetention()
	s.describeBlobs()
	s.describeUploads()
	s.describeSearch()
	s.describeUsage()
	s.describeImport()
	s.describeMetrics()
	s.describeBlame()
	s.describeSecrets()
	s.describeAccess()
	s.describeIssue()
	s.describeLogin()
	s.serveOpenAI()
	s.serveMCP()
	s.serveViewer()
	s.mux.HandleFunc(elsewhere, s.nowhere)
	plain(s.api.OpenAPI())
}

const apiText = `Sessions of AI agents: conversations as trees, with the agent's state at every commit.
Errors are problem details (RFC 9457) with a code. Lists that have the type application/x-ndjson too are lines if Accept
asks for them: one for each item, and if there are other pages, a last one with nothing but next and prev.
An error after the first item of a list is its last member, or its last line, error.
Within v1 fields may be added, and none is removed or changes its meaning.`

// Description returns the description of the API, OpenAPI 3.1 in JSON.
func (s *Server) Description() ([]byte, error) {
	raw, err := json.MarshalIndent(s.api.OpenAPI(), "", " ")
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return append(raw, '\n'), nil
}
