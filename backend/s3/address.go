package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/backend"
)

func init() {
	backend.Register("s3", openURL)
}

// openURL opens s3://bucket/prefix?parameters.
func openURL(ctx context.Context, u *url.URL) (backend.Backend, error) {
	bucket, prefix, o, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	b, err := Open(ctx, bucket, o)
	if err != nil || prefix == "" {
		return b, err
	}
	return &folder{Backend: backend.WithPrefix(b, prefix), bucket: b}, nil
}

// parseURL parses an address. An unknown parameter is an error: with a misspelt sse= objects would be stored
// unencrypted.
func parseURL(u *url.URL) (bucket, prefix string, o *Options, err error) {
	switch {
	case u.User != nil:
		return "", "", nil,
			errors.New("credentials do not belong in an address: use the environment, a profile or a role")
	case u.Host == "" || u.Opaque != "" || u.Port() != "":
		return "", "", nil, errors.New("want s3://bucket/prefix")
	case u.Fragment != "":
		return "", "", nil, errors.New("an S3 address cannot have a fragment")
	}
	prefix = strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := backend.ValidKey(prefix); err != nil {
			return "", "", nil, fmt.Errorf("prefix: %w", err)
		}
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", "", nil, fmt.Errorf("parameters: %w", err)
	}
	o = &Options{}
	for name, list := range values {
		set, ok := parameters[name]
		switch {
		case !ok:
			return "", "", nil, fmt.Errorf("unknown parameter %q: want %s", name, parameterNames())
		case len(list) != 1 || list[0] == "":
			return "", "", nil, fmt.Errorf("parameter %s: want one value", name)
		}
		if err := set(o, list[0]); err != nil {
			return "", "", nil, fmt.Errorf("parameter %s=%q: %w", name, list[0], err)
		}
	}
	return u.Host, prefix, o, nil
}

// parameters are the parameters of the query.
var parameters = map[string]func(o *Options, value string) error{
	"region":        func(o *Options, v string) error { o.Region = v; return nil },
	"endpoint":      func(o *Options, v string) error { o.Endpoint = v; return nil },
	"kms-key":       func(o *Options, v string) error { o.KMSKey = v; return nil },
	"storage-class": func(o *Options, v string) error { o.StorageClass = v; return nil },
	"sse":           func(o *Options, v string) error { o.SSE = v; return nil },
	"path-style": func(o *Options, v string) (err error) {
		o.PathStyle, err = strconv.ParseBool(v)
		return err
	},
	"rate": func(o *Options, v string) (err error) {
		o.Rate, err = strconv.ParseFloat(v, 64)
		return err
	},
	"request-payer": func(o *Options, v string) error {
		if v != "requester" {
			return errors.New(`want "requester"`)
		}
		o.RequesterPays = true
		return nil
	},
}

func parameterNames() string {
	names := make([]string, 0, len(parameters))
	for name := range parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// folder is the part of a bucket below a prefix. Its Close closes the bucket, which belongs to it.
type folder struct {
	backend.Backend
	bucket *Backend
}

func (f *folder) Close() error { return errors.Join(f.Backend.Close(), f.bucket.Close()) }
