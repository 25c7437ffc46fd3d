package backend

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
)

// the drivers of this module, and the import that registers each.
var imports = map[string]string{
	"file": "github.com/coppice-go/coppice/backend/local",
	"mem":  "github.com/coppice-go/coppice/backend/memory",
	"s3":   "github.com/coppice-go/coppice/backend/s3",
}

type opener = func(ctx context.Context, u *url.URL) (Backend, error)

var registry = struct {
	sync.RWMutex
	open map[string]opener
}{open: map[string]opener{}}

// Register registers a driver for Open under a URL scheme, in lower case and of at least two bytes; a driver calls it
// in an init function. It panics if the scheme has a driver, or if open is nil.
func Register(scheme string, open func(ctx context.Context, u *url.URL) (Backend, error)) {
	if found, _, ok := cutScheme(scheme + ":"); !ok || found != scheme || open == nil {
		panic(fmt.Sprintf("backend: register %q: not a scheme, or no driver", scheme))
	}
	registry.Lock()
	defer registry.Unlock()
	if _, twice := registry.open[scheme]; twice {
		panic(fmt.Sprintf("backend: register %q: taken", scheme))
	}
	registry.open[scheme] = open
}

// Open opens the backend of a URL with the driver that is registered for its scheme. A bare path, relative or not, is a
// folder on the local disk: the driver of "file" gets it in u.Path, with slashes. The error for a scheme without a
// driver names the missing import.
func Open(ctx context.Context, rawURL string) (Backend, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	registry.RLock()
	open := registry.open[u.Scheme]
	registry.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("open store %s: no driver for %q: %s", Redacted(rawURL), u.Scheme, missing(u.Scheme))
	}
	b, err := open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", Redacted(rawURL), err)
	}
	return b, nil
}

// Redacted returns an address without the user, the password and the values of parameters that may be secret, for
// messages and logs. The address need not be valid. A bare path is returned unchanged.
func Redacted(address string) string {
	scheme, rest, ok := cutScheme(address)
	if !ok {
		return address
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, isURL := strings.CutPrefix(rest, "//")
	host, _, _ = strings.Cut(host, "/")
	_, port, _ := strings.Cut(host, ":")
	local := scheme == "file" && (!isURL || !strings.Contains(host, "@"))
	// A password with a slash ends the host early, and looks like a port.
	if user := !isURL || strings.Contains(host, "@") || strings.Trim(port, "0123456789") != ""; user && !local {
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = hidden + rest[at:]
			if isURL {
				rest = "//" + rest
			}
		}
	}
	if !hasQuery {
		return scheme + ":" + rest
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		if secret(name, value) {
			parameters[i] = name + "=" + hidden
		}
	}
	return scheme + ":" + rest + "?" + strings.Join(parameters, "&")
}

// hidden replaces the removed parts.
const hidden = "xxxxx"

// secret reports whether Redacted hides a parameter.
func secret(name, value string) bool {
	for _, word := range []string{"key", "secret", "token", "pass", "sig", "cred"} {
		if strings.Contains(strings.ToLower(name), word) {
			return true
		}
	}
	return strings.Contains(value, "@") || strings.Contains(value, "%40")
}

func missing(scheme string) string {
	if path, ok := imports[scheme]; ok {
		return fmt.Sprintf("import _ %q", path)
	}
	if scheme == "http" || scheme == "https" {
		return "a server is not a store; for an S3 server use s3://bucket?endpoint=URL"
	}
	return "import the package that registers it"
}

func parse(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("empty address")
	}
	scheme, rest, ok := cutScheme(raw)
	if !ok {
		return &url.URL{Scheme: "file", Path: filepath.ToSlash(raw)}, nil
	}
	u, err := url.Parse(scheme + ":" + rest)
	if err != nil {
		detail, ok := errors.AsType[*url.Error](err) // its text repeats the address
		if !ok || strings.Contains(rest, "@") {      // and its cause may repeat a part of a password
			return nil, fmt.Errorf("%s is not a URL", Redacted(raw))
		}
		return nil, fmt.Errorf("address with scheme %q: %w", scheme, detail.Err)
	}
	if u.Scheme == "file" && u.Opaque != "" { // file:some/folder
		if u.Path, err = url.PathUnescape(u.Opaque); err != nil {
			return nil, fmt.Errorf("address with scheme %q: %w", scheme, err)
		}
		u.Opaque = ""
	}
	return u, nil
}

// cutScheme splits "scheme:rest". One letter before the colon is a drive, not a scheme.
func cutScheme(raw string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(raw, ":")
	if !ok || len(scheme) < 2 {
		return "", "", false
	}
	scheme = strings.ToLower(scheme)
	for i, c := range []byte(scheme) {
		letter := c >= 'a' && c <= 'z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return "", "", false
		}
	}
	return scheme, rest, true
}
