package backend_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// opened records the URL that the driver of a test's scheme received.
type opened struct {
	*memory.Backend
	u *url.URL
}

func init() {
	echo := func(_ context.Context, u *url.URL) (backend.Backend, error) { return opened{memory.New(), u}, nil }
	backend.Register("echo", echo)
	backend.Register("file", echo)
	backend.Register("broken", func(context.Context, *url.URL) (backend.Backend, error) { return nil, errors.New("no route") })
}

func TestOpen(t *testing.T) {
	for raw, want := range map[string]url.URL{
		"echo://bucket/prefix?region=x": {Scheme: "echo", Host: "bucket", Path: "/prefix", RawQuery: "region=x"},
		"ECHO:":                         {Scheme: "echo"},
		"file:///srv/store":             {Scheme: "file", Path: "/srv/store"},
		"file:///with%20blank%25":       {Scheme: "file", Path: "/with blank%"},
		"file:some/folder":              {Scheme: "file", Path: "some/folder"},
		"/srv/store":                    {Scheme: "file", Path: "/srv/store"},
		"some/folder":                   {Scheme: "file", Path: "some/folder"},
		".":                             {Scheme: "file", Path: "."},
		"/odd ?#%zz name":               {Scheme: "file", Path: "/odd ?#%zz name"},
		"./a:b":                         {Scheme: "file", Path: "./a:b"},
		`C:\store`:                      {Scheme: "file", Path: `C:\store`},
	} {
		b, err := backend.Open(t.Context(), raw)
		if err != nil {
			t.Errorf("open %q: %v", raw, err)
			continue
		}
		u := b.(opened).u
		if u.Scheme != want.Scheme || u.Host != want.Host || u.Path != want.Path || u.RawQuery != want.RawQuery || u.Opaque != "" {
			t.Errorf("open %q: driver got %#v, want %#v", raw, *u, want)
		}
	}
}

func TestOpenMemoryIsFreshEachTime(t *testing.T) {
	for range 2 {
		b, err := backend.Open(t.Context(), "mem:")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), "k", nil, backend.IfAbsent()); err != nil {
			t.Error(err)
		}
	}
	for _, raw := range []string{"mem:a/b", "mem:a b", "mem:" + strings.Repeat("n", 129), "mem:x?y=1", "mem://host", "mem:///path", "mem:?x=1"} {
		if _, err := backend.Open(t.Context(), raw); err == nil {
			t.Errorf("open %q: no error", raw)
		}
	}
}

// All handles on a name in this process share one store, also after all earlier handles were closed.
func TestOpenNamedMemoryIsShared(t *testing.T) {
	open := func(name string) backend.Backend {
		b, err := backend.Open(t.Context(), "mem:"+t.Name()+name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, other := open("a"), open("b")
	if _, err := a.Put(t.Context(), "k", []byte("v"), backend.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if p, _, err := open("a").Get(t.Context(), "k", backend.Range{}); string(p) != "v" {
		t.Errorf("the same name: %q, %v", p, err)
	}
	if _, _, err := other.Get(t.Context(), "k", backend.Range{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another name: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	for raw, want := range map[string]string{
		"":                          "empty address",
		"s3://bucket":               `import _ "github.com/coppice-go/coppice/backend/s3"`,
		"S3://bucket":               `import _ "github.com/coppice-go/coppice/backend/s3"`,
		"redis://host":              `no driver for "redis": import the package that registers it`,
		"echo://[::1":               "missing ']'",
		"broken://host":             "no route",
		"broken://me:secret@host/x": "no route",
		"redis://me:secret@host/x":  "no driver",
		"echo://me:secret@host:x/":  "is not a URL",
	} {
		_, err := backend.Open(t.Context(), raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open %q: error %v, want one with %q", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("open %q: the error tells the password: %v", raw, err)
		}
	}
}

func TestRegisterPanics(t *testing.T) {
	open := func(context.Context, *url.URL) (backend.Backend, error) { return nil, nil }
	for scheme, open := range map[string]func(context.Context, *url.URL) (backend.Backend, error){
		"echo": open, "": open, "c": open, "Upper": open, "a/b": open, "1a": open, "a:b": open, "fresh": nil,
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("register %q: no panic", scheme)
				}
			}()
			backend.Register(scheme, open)
		}()
	}
}

func TestRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"s3://KEY:SECRET@bucket/x?region=r":            "s3://xxxxx@bucket/x?region=r",
		"s3://KEY@bucket":                              "s3://xxxxx@bucket",
		"s3:KEY:SECRET@bucket":                         "s3:xxxxx@bucket",
		"s3://KEY:SEC/RET@bucket/x":                    "s3://xxxxx@bucket/x",
		"s3://KEY:SEC%zzRET@bucket":                    "s3://xxxxx@bucket",
		"s3://KEY:S@EC/R@bucket":                       "s3://xxxxx@bucket",
		"s3://b?secret=SECRET&region=r":                "s3://b?secret=xxxxx&region=r",
		"s3://b?endpoint=http://KEY:SECRET@h&region=r": "s3://b?endpoint=xxxxx&region=r",
		"s3://b?endpoint=http%3A%2F%2FKEY:SECRET%40h":  "s3://b?endpoint=xxxxx",
		"s3://b/user@host/x?region=r&path-style=true":  "s3://b/user@host/x?region=r&path-style=true",
		"s3://b?endpoint=http://127.0.0.1:9000":        "s3://b?endpoint=http://127.0.0.1:9000",
		"http://KEY:SECRET@h:80/x":                     "http://xxxxx@h:80/x",
		"file://KEY:SECRET@h/x":                        "file://xxxxx@h/x",
		"file:///home/me@here/store":                   "file:///home/me@here/store",
		"file:me@here":                                 "file:me@here",
		"/home/me@here/store":                          "/home/me@here/store",
		"mem:":                                         "mem:",
	} {
		t.Run(address, func(t *testing.T) {
			if got := backend.Redacted(address); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if _, err := backend.Open(t.Context(), address); err != nil && strings.Contains(want, "xxxxx") {
				for _, word := range []string{"KEY", "SEC", "RET"} {
					if strings.Contains(err.Error(), word) {
						t.Errorf("the error has %q: %v", word, err)
					}
				}
			}
		})
	}
}
