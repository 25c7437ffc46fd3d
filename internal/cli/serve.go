package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/server"
)

// retainLeast is the least time between two runs of the retention policy.
const retainLeast = time.Minute

// shutdownLimit is how long requests under way may take after the signal.
const shutdownLimit = 10 * time.Second

type serveOptions struct {
	addr, tokenFile, tlsCert, tlsKey, basePath, publicURL, audit string
	origins, follow                                              []string
	readOnly, tenants, demo, open, auditReads                    bool
	demoTurns                                                    int
	retainEvery                                                  time.Duration
}

func (c *cli) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the store in a browser, and serve it over HTTP",
		Long: `Serve the store over HTTP until interrupted or terminated. A browser finds the viewer at /: every branch
of a session, the state at every commit, what the model saw, and the way back. Programs in any language
find sessions, commits, moves and events at /v1; /v1/openapi.json describes them, docs/http.md is the guide.

On this machine alone (the default) no token is needed. Any other address needs --token-file: a line is
the SHA-256 of a token in hex, a tenant (- = all) and the rights, such as read, read,write or admin;
docs/http.md has them all. The file is read again when it changes, and at SIGHUP. With tokens, a link is
printed that lets a browser in, once.

--tenants serves a store of its own for each tenant, at /t/NAME/v1: the part of the store below the
folder NAME. --follow imports what is added to the session files in a folder, as import --watch does,
so that the sessions of programs on this machine appear while they run.`,
		Example: `  coppice serve --demo
  coppice serve --follow ~/.claude/projects
  coppice serve --addr :7070 --token-file tokens --public-url https://coppice.example`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:7070", "address to listen at; port 0 = any that is free")
	f.StringVar(&o.tokenFile, "token-file", "", "file of the tokens that are let in")
	f.StringArrayVar(&o.origins, "allow-origin", nil,
		"origin whose pages may call the API, such as https://chat.example; * = all, and then no cookie counts")
	f.StringVar(&o.tlsCert, "tls-cert", "", "file of the certificate (PEM); needs --tls-key")
	f.StringVar(&o.tlsKey, "tls-key", "", "file of the certificate's key (PEM)")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse every write")
	f.StringVar(&o.basePath, "base-path", "", "what stands before every path, such as /coppice")
	f.StringVar(&o.publicURL, "public-url", "",
		"address by which clients reach the server, such as https://coppice.example")
	f.BoolVar(&o.tenants, "tenants", false, "serve a store for each tenant, at /t/NAME/v1")
	f.StringVar(&o.audit, "audit", "", "file of the audit log of administrative acts; default: $COPPICE_AUDIT")
	f.BoolVar(&o.auditReads, "audit-reads", false, "record each read of content too; needs an audit log")
	f.DurationVar(&o.retainEvery, "retain-every", 0,
		"remove for good what the retention policy does not keep, each time this has passed, such as 24h; 0 = never")
	f.StringArrayVar(&o.follow, "follow", nil, "import what is added to the session files in this folder")
	f.BoolVar(&o.demo, "demo", false, "serve sessions made for show from memory, instead of a store")
	f.IntVar(&o.demoTurns, "demo-turns", 200,
		"turns that an agent of the demo commits, one every 5 s, unless --read-only; 0 = none")
	f.BoolVar(&o.open, "open", false, "open the address in the browser")
	return cmd
}

// valid refuses options that cannot be, or that would let in everyone.
func (c *cli) validServe(o serveOptions) error {
	host, _, err := net.SplitHostPort(o.addr)
	switch {
	case c.json:
		return usageError("serve has no JSON document; the API has")
	case err != nil:
		return usageError("--addr %s: want HOST:PORT, such as 127.0.0.1:7070", o.addr)
	case o.tokenFile == "" && !loopback(host):
		return usageError("--addr %s can be reached from other machines, and without --token-file everyone there "+
			"could read and change the store: set --token-file, or use a loopback address", o.addr)
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return usageError("--tls-cert and --tls-key need each other")
	case o.demo && (c.storeFlag != "" || len(o.follow) > 0 || o.tenants):
		return usageError("--demo cannot be used with --store, --follow or --tenants")
	case o.auditReads && o.audit == "":
		return usageError("--audit-reads needs --audit FILE")
	case o.retainEvery != 0 && o.retainEvery < retainLeast:
		return usageError("--retain-every %v: want at least %v, or 0", o.retainEvery, retainLeast)
	case o.retainEvery != 0 && o.readOnly:
		return usageError("--retain-every removes sessions: not with --read-only")
	case o.tenants && o.tokenFile == "":
		return usageError("--tenants needs --token-file: without tokens everyone is every tenant")
	case o.tenants && len(o.follow) > 0:
		return usageError("--tenants cannot be used with --follow: no tenant owns the folders")
	}
	return nil
}

// loopback reports whether only this machine can reach an address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// service is a running server.
type service struct {
	c      *cli
	o      serveOptions
	st     *countedStore
	tokens *server.Tokens // nil = none are needed

	tokenInfo os.FileInfo // of the token file when it was read

	log     *slog.Logger
	handler *server.Server
	http    *http.Server
}

// moreProcessors lets Go run more threads at once than there are processors: one that waits in a sync counts as running
// until the runtime looks, up to 10 ms later, and a server of many sessions waits in as many syncs.
var moreProcessors = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(4 * runtime.GOMAXPROCS(0))
	}
})

func (c *cli) serve(ctx context.Context, o serveOptions) error {
	o.audit = cmp.Or(o.audit, c.getenv("COPPICE_AUDIT"))
	if err := c.validServe(o); err != nil {
		return err
	}
	moreProcessors()
	if o.demo {
		c.storeFlag = "mem:"
	}
	return c.withStore(ctx, func(st *countedStore) error {
		s := &service{c: c, o: o, st: st, log: slog.New(slog.NewTextHandler(c.stderr, nil))}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		return s.run(ctx)
	})
}

// prepare makes the server.
func (s *service) prepare(ctx context.Context) error {
	var err error
	if s.o.tokenFile != "" {
		err = s.readTokens(func(f io.Reader) (err error) {
			s.tokens, err = server.ParseTokens(f)
			return err
		})
		if err != nil {
			return err
		}
	}
	if s.o.demo {
		if err = demostore.Build(ctx, s.st.b); err != nil {
			return err
		}
	}
	o := server.Options{
		Store: s.st.Store, Tokens: s.tokens, ReadOnly: s.o.readOnly, Origins: s.o.origins, BasePath: s.o.basePath,
		Logger: s.log, Now: s.c.now,
		AuditFile: s.o.audit, AuditReads: s.o.auditReads,
		Forget: s.forget,
		Index:  server.Index{File: s.indexFile, Shallow: strings.HasPrefix(s.st.url, "s3:")},
	}
	if o.Trash, err = s.c.stateFile("trash"); err != nil {
		s.log.WarnContext(ctx, "there is no trash", "error", err.Error())
	}
	if s.o.tenants {
		o.Store, o.Tenant, o.Tenants = nil, s.tenant, s.tenantNames
	}
	if o.Hosts, err = s.hosts(); err != nil {
		return err
	}
	if s.handler, err = server.New(o); err != nil {
		return usageError("%w", err)
	}
	s.http = httpServer(s.handler, s.log)
	return nil
}

// readTokens reads the token file.
func (s *service) readTokens(read func(io.Reader) error) error {
	f, err := os.Open(s.o.tokenFile)
	if err != nil {
		return err
	}
	if s.tokenInfo, err = f.Stat(); err == nil {
		err = read(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return usageError("--token-file %s: %w", s.o.tokenFile, err)
	}
	return nil
}

// tokensEvery is how often the token file is looked at.
const tokensEvery = 5 * time.Second

// followTokens reads the token file again at each signal, and at each tick if the file has changed. After an error
// everything is as it was.
func (s *service) followTokens(ctx context.Context, signals <-chan os.Signal, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		case <-ticks:
			now, err := os.Stat(s.o.tokenFile)
			if err == nil && now.Size() == s.tokenInfo.Size() && now.ModTime().Equal(s.tokenInfo.ModTime()) &&
				os.SameFile(now, s.tokenInfo) {
				continue
			}
		}
		if err := s.readTokens(s.tokens.Reload); err != nil {
			s.log.WarnContext(ctx, "the tokens stay as they were", "error", err.Error())
			continue
		}
		s.log.InfoContext(ctx, "the tokens were read again")
	}
}

// httpServer returns a server with limits for clients that are slow, or send too much. Answers have no limit as a
// whole, because streams do not end; package server bounds each piece of them.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// hosts returns the host names that the server accepts. A server on a wildcard address without a public URL
// cannot know them; it has tokens, which a page with a name of its own does not have.
func (s *service) hosts() ([]string, error) {
	host, _, _ := net.SplitHostPort(s.o.addr)
	if s.o.publicURL != "" {
		u, err := url.Parse(s.o.publicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, usageError("--public-url %s: want one like https://coppice.example",
				backend.Redacted(s.o.publicURL))
		}
		return []string{host, u.Hostname()}, nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return []string{"*"}, nil
	}
	return []string{host}, nil
}

// indexFile returns the file of the full-text index of a tenant, "" = that of the store, which commands use too.
func (s *service) indexFile(tenant string) string {
	file := s.c.indexFile(s.st.url)
	if tenant == "" || file == "" {
		return file
	}
	return strings.TrimSuffix(file, ".db") + "-" + tenant + ".db"
}

// forget removes what this machine keeps of a deleted session apart from the store: its pin, and crumbs.
func (s *service) forget(tenant, id string) (pin bool, crumbs int, err error) {
	at, query, queried := strings.Cut(s.st.url, "?")
	if tenant != "" {
		at = strings.TrimSuffix(at, "/") + "/" + tenant
	}
	if queried {
		at += "?" + query
	}
	return s.c.forget(at, id)
}

// tenant opens the store of a tenant, which is a folder of the store.
func (s *service) tenant(name string) (*coppice.Store, error) {
	o := &coppice.Options{SingleWriter: s.c.singleWriter, Now: s.c.now, Reread: formats.Reread}
	return coppice.New(backend.WithPrefix(s.st.b, name), o)
}

// tenantNames returns the names of the folders of the store, which are those of the tenants.
func (s *service) tenantNames(ctx context.Context) (names []string, err error) {
	for info, err := range s.st.b.List(ctx, backend.ListOptions{Delimiter: "/"}) {
		if err != nil {
			return nil, err
		}
		if info.Prefix {
			names = append(names, strings.TrimSuffix(info.Key, "/"))
		}
	}
	return names, nil
}

// run serves until the context is done, or until serving or following failed.
func (s *service) run(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.addr)
	if err != nil {
		return errors.Join(err, s.handler.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running, retaining sync.WaitGroup
	failed := make(chan error, 3) // one of each that runs
	running.Go(func() {
		if err := s.listen(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	})
	if s.tokens != nil {
		signals, ticks := make(chan os.Signal, 1), time.NewTicker(tokensEvery)
		signal.Notify(signals, syscall.SIGHUP) // before the address is printed: until then the signal ends the process
		defer signal.Stop(signals)
		defer ticks.Stop()
		running.Go(func() { s.followTokens(ctx, signals, ticks.C) })
	}
	if len(s.o.follow) > 0 {
		running.Go(func() {
			if err := s.follow(ctx); err != nil {
				failed <- fmt.Errorf("follow: %w", err)
			}
		})
	}
	if s.o.retainEvery > 0 {
		retaining.Go(func() { s.handler.Retain(ctx, s.o.retainEvery, s.c.after) })
	}
	if s.o.demo && !s.o.readOnly {
		running.Go(func() {
			if err := s.liveDemo(ctx); err != nil {
				failed <- err
			}
		})
	}
	if err = s.announce(ctx, l.Addr()); err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	cancel()
	retaining.Wait()
	err = errors.Join(err, s.end(ctx))
	running.Wait()
	return err
}

func (s *service) listen(l net.Listener) error {
	if s.o.tlsCert == "" {
		return s.http.Serve(server.Listen(s.http, l, nil))
	}
	pair, err := tls.LoadX509KeyPair(s.o.tlsCert, s.o.tlsKey)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return s.http.Serve(server.Listen(s.http, l, config))
}

// end ends the streams, waits for requests under way for a time, and finishes commits that have begun.
func (s *service) end(ctx context.Context) error {
	s.handler.EndStreams()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := s.http.Shutdown(late); err != nil {
		s.log.WarnContext(ctx, "requests were cut off", "error", err.Error())
		_ = s.http.Close() // what it closes are connections
	}
	return s.handler.Close()
}

// follow imports what is added to session files. Its messages go to the standard error.
func (s *service) follow(ctx context.Context) error {
	c := *s.c
	c.stdout = c.stderr
	run := &importRun{
		c: &c, o: importOptions{format: "auto", grow: true, watch: true}, st: s.st, several: true,
	}
	return run.watch(ctx, s.o.follow)
}

// announce prints the address, and the link that lets a browser in.
func (s *service) announce(ctx context.Context, at net.Addr) error {
	base := strings.TrimSuffix(s.o.publicURL, "/")
	if base == "" {
		host, port, err := net.SplitHostPort(at.String())
		if err != nil {
			return err
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		scheme := "http"
		if s.o.tlsCert != "" {
			scheme = "https"
		}
		base = scheme + "://" + net.JoinHostPort(host, port) + s.o.basePath
	}
	if err := s.c.textf("serving %s", base); err != nil {
		return err
	}
	page := base
	if s.o.demo {
		page = base + "/s/" + demostore.Main + "?hints=1&at=" + demostore.Point
	}
	if s.tokens != nil {
		page = base + "/login?code=" + s.tokens.Link()
		if err := s.c.textf("log in once with %s", page); err != nil {
			return err
		}
	}
	if s.o.open {
		if err := browse(ctx, page); err != nil {
			s.c.notef("cannot open a browser: %v", err)
		}
	}
	return nil
}

// browse opens an address in the browser of the desktop.
func browse(ctx context.Context, page string) error {
	name, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	return exec.CommandContext(ctx, name, args...).Run()
}
