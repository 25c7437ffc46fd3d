// Package server serves stores over HTTP: what a Go program does with a Session, a program in any language does with
// requests, and a browser too. docs/http.md is its guide, docs/openapi.json its contract.
//
// Guarantees, in addition to those of package coppice, which hold over the wire:
//
//   - The head is the ETag of a session: the id of its newest commit. A write names the commit that it was made on
//     (If-Match), and one that lost to another writer is 412, with the winner; nothing was stored.
//   - A commit with an Idempotency-Key is stored once, however often and through whichever server it is sent, as long
//     as the session remembers the key: those of its last 1,024 commits with a key.
//   - A GET is never older than the store was when the request arrived, and changes no byte of it.
//   - The server holds nothing that the store does not have: two servers on one store are two writers.
//   - A client that disconnects affects no other request. A commit that has begun is finished.
//   - The pages of the viewer, at / and /s/ID, hold nothing of a store and need no token: what they show they ask the
//     API for. They run no code but the server's own (Content-Security-Policy with Trusted Types).
//   - Messages and states pass through byte for byte, without insignificant white space.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/manager"
)

// Options of a Server. The zero value of each field is its default.
type Options struct {
	// Store is what requests read and write, unless Authorize names another one. The caller closes it, after the
	// server.
	Store *coppice.Store

	// Authorize returns what a request may do, and on which store. An error that is ErrUnauthorized is 401,
	// ErrForbidden is 403, and fs.ErrNotExist is 404; any other is 500. nil = everything, on Store. It is called for
	// every request under /v1 but health and the API's description, and under /openai, concurrently, before any of the
	// body is read. With ErrForbidden it may return who asks, for the audit log.
	Authorize func(*http.Request) (Access, error)

	// Tokens are the secrets of clients. If they are set, Authorize is theirs unless it is set too, POST /login?code=
	// makes a cookie out of a one-time link (Tokens.Link), and POST /logout ends it.
	Tokens *Tokens

	// Tenant opens the store of a tenant, which is served at /t/NAME/v1; an error that is fs.ErrNotExist is 404. It is
	// called for a name that a request was allowed to use, one at a time, and again after the server has closed the
	// store: when no request used it for Idle, when another tenant needs its place, at once if it has no session, and
	// with the server. Names are 1 to 64 of a-z, 0-9, - and _, without those of a store's own folders, such as
	// sessions. Authorize finds the name as r.PathValue("tenant"), "" = none, and has to refuse tenants of others.
	// nil = there are no tenants.
	Tenant func(name string) (*coppice.Store, error)
	// Tenants returns the names of all tenants, for Retain, which passes over invalid ones. nil = it runs the policy of
	// none.
	Tenants func(ctx context.Context) ([]string, error)

	// Quota returns what a tenant may store. It is called for every write, concurrently. nil = that of Tokens, or none.
	Quota func(tenant string) Quota

	// BasePath precedes every path, such as /coppice; what is not below it is 404. "" = nothing.
	BasePath string

	ReadOnly bool // refuses every write with 403
	NoViewer bool // leaves out the pages: only /v1, /openai, /metrics and /login are served

	// Hosts are the names by which the server may be called in addition to localhost and addresses of the loopback
	// interface (the Host header, without its port): what keeps a page of another site from reaching it by a name of
	// its own. "*" allows all.
	Hosts []string
	// Origins are the origins ("https://chat.example") whose pages may call the API; others may not write. "*" allows
	// all, and then no cookie counts.
	Origins []string

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // one line for each request, without its query, its body and its answer; default silent

	// Idle is how long a session stays open for writing, and a tenant's store at all, after its last request. Default
	// 1 minute.
	Idle time.Duration
	// Timeout bounds a commit that has begun, in which no client can cancel it. Default 30 s.
	Timeout time.Duration
	// Heartbeat is how often a comment is sent to a stream of events that has none. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout bounds the sending of an event, or of 64 KiB of another answer, to a client that reads slowly: its
	// connection is closed. Default 30 s.
	WriteTimeout time.Duration
	// ReadTimeout bounds how long the body of a request takes to come, plus a second for each 64 KiB that came: what
	// is slower is 408, and nothing is stored. Streams of answers have no part in it. How long headers take is for the
	// http.Server to bound. Default 30 s.
	ReadTimeout time.Duration

	// AuditFile is the file of the audit log: administrative acts, each before it is done, and how it ended. If it
	// cannot be written, the act is refused. "" = there is none. AuditReads adds a line for each read of content.
	AuditFile  string
	AuditReads bool

	// Index is where search and prompts look.
	Index Index
	// Trash is the folder into which sessions are deleted with trash=1, those of a tenant into a folder of its name;
	// "" = there is none, and such a request is refused.
	Trash string
	// Forget removes what else this machine keeps of a deleted session, and returns whether it was pinned, and how many
	// terminals remembered it; nil = it keeps nothing.
	Forget func(tenant, session string) (pin bool, crumbs int, err error)

	MaxBody   int64 // of a commit, in bytes; default 64 MiB
	MaxBodies int64 // of all bodies over 64 KiB under way, of a tenant two thirds; default, and least, 1.5 MaxBody
	MaxImport int64 // of the body of an import, in bytes, which lies in a temporary file; default 4 GiB

	// Of each of these one tenant has at most half, rounded up. Bodies of imports take 2 MaxImport bytes of the disk.
	MaxSessions    int // open for writing at a time, of a tenant by its store; default 1,024
	MaxImports     int // under way at a time, without the time in which their bodies come; default 2
	MaxSearches    int // searches, and lists of prompts and usage, at a time; default 8
	MaxSubscribers int // streams of events and long polls at a time; default 4,096

	MaxTenants int // whose stores are open; default 1,024
}

// Access is what a request may do.
type Access struct {
	Store  *coppice.Store // nil = Options.Store, or that of the tenant whom the path names
	Rights Rights
	Only   Only
	Tenant string // whose part of the limits it takes; "" = the one whom the path names, or none
	Who    string // by which the audit log calls the client
}

// Errors of Options.Authorize.
var (
	ErrUnauthorized = errors.New("no token, or one that is not known")
	ErrForbidden    = errors.New("the token does not allow this")
)

// withDefaults returns the options with every zero replaced.
func (o Options) withDefaults() Options {
	or := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	or(&o.Idle, time.Minute)
	or(&o.Timeout, 30*time.Second)
	or(&o.Heartbeat, 15*time.Second)
	or(&o.WriteTimeout, 30*time.Second)
	or(&o.ReadTimeout, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 20
	}
	o.MaxBodies = max(o.MaxBodies, o.MaxBody*3/2)
	if o.MaxImport == 0 {
		o.MaxImport = 4 << 30
	}
	if o.MaxImports == 0 {
		o.MaxImports = 2
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 1024
	}
	if o.MaxSearches == 0 {
		o.MaxSearches = 8
	}
	if o.MaxSubscribers == 0 {
		o.MaxSubscribers = 4096
	}
	if o.MaxTenants == 0 {
		o.MaxTenants = 1024
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tokens != nil {
		o.Tokens.now = o.Now
		if o.Authorize == nil {
			o.Authorize = o.Tokens.Authorize
		}
		if o.Quota == nil {
			o.Quota = o.Tokens.quota
		}
	}
	if o.Authorize == nil {
		o.Authorize = func(*http.Request) (Access, error) { return Access{Rights: Admin}, nil }
	}
	return o
}

// Server is an http.Handler of the API.
type Server struct {
	o       Options
	mux     *http.ServeMux
	api     huma.API
	handler http.Handler // the mux behind what every request passes

	writers  *writers
	views    views
	contexts contexts
	uploads  uploads
	readers  readers
	streams  *streams
	tenants  tenants
	indexes  indexes
	usages   manager.UsageCache
	growths  growths
	equals   equals

	bodies, files                  *budget // bytes
	imports, searches, subscribers *budget
	wholes                         *budget // reads of a session as a whole

	audit    *audit.Log // nil = there is none
	metrics  *metrics
	blamed   int           // commits that one request for the history of a value looks at
	streamed time.Duration // how long a stream of events lasts
	indexed  time.Duration // how long a search waits for the index to be brought up to date

	once   sync.Once
	closed error // of Close
}

// New returns a server. It does no I/O.
func New(o Options) (*Server, error) {
	if o.Store == nil && o.Authorize == nil && o.Tenant == nil {
		return nil, errors.New("new server: neither Store nor Authorize nor Tenant is set")
	}
	if p := o.BasePath; p != "" && (p[0] != '/' || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "%?#")) {
		return nil, fmt.Errorf("new server: base path %.80q: want one like /coppice", p)
	}
	for _, origin := range o.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil && origin != "*" {
			return nil, fmt.Errorf("new server: origin: %w", err)
		}
	}
	s := &Server{o: o.withDefaults(), mux: http.NewServeMux()}
	if s.o.AuditFile != "" {
		s.audit = audit.Open(s.o.AuditFile, s.o.Now)
	}
	s.equals.busy = map[equal]chan struct{}{}
	s.streams = newStreams(s)
	s.tenants = tenants{s: s, by: map[string]*tenant{}}
	s.indexes = indexes{s: s, open: map[*coppice.Store]*index{}}
	s.bodies = newBudget(s.o.MaxBodies, s.o.MaxBodies*2/3, patience, errBodies)
	part := int64(2) // of one tenant: a half
	if o.Tenant == nil && o.Authorize == nil {
		part = 1 // there is one user
	}
	halved := func(all int64, wait time.Duration, full error) *budget {
		return newBudget(all, (all+part-1)/part, wait, full)
	}
	s.writers = newWriters(s.o.Idle, s.o.MaxSessions, (s.o.MaxSessions+int(part)-1)/int(part))
	s.files = halved(2*s.o.MaxImport, patience, errFiles)
	s.imports = halved(int64(s.o.MaxImports), patience, errImports)
	s.searches = halved(int64(s.o.MaxSearches), patience, errSearches)
	s.wholes = halved(maxWholes, patience, errWholes)
	s.subscribers = halved(int64(s.o.MaxSubscribers), 0, errStreams)
	s.blamed, s.streamed, s.indexed = maxBlamed, maxStream, maxIndexed
	s.views.most = maxViewBytes
	s.metrics = newMetrics(s)
	s.describe()
	packed, err := compressed(http.HandlerFunc(s.routed))
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	s.handler = s.middleware(packed)
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// EndStreams ends the streams of events, which http.Server.Shutdown would wait for. Clients of theirs connect again.
func (s *Server) EndStreams() { s.streams.end() }

// Close ends the streams of events, waits for commits that have begun, and closes the sessions. Requests that come
// later are 503. Call it after http.Server.Shutdown. It is idempotent. An error is that of an index of search, which
// holds nothing that the store has not: what was acknowledged is stored before.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.streams.end()
		s.streams.wait()
		s.writers.close()
		s.closed = errors.Join(s.readers.close(), s.indexes.close())
		s.tenants.close()
		if s.audit != nil {
			s.closed = errors.Join(s.closed, s.audit.Close())
		}
	})
	return s.closed
}
