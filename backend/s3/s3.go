// Package s3 stores objects in a bucket of Amazon S3, or of a compatible store that honours conditional writes. A call
// returns nil only if the store answered with success. An error with the outcome NotApplied means that the call had no
// effect and never will have one. Every other error of a write has the outcome Unknown.
//
// # Writing
//
// A Put or Delete sends one request. The retries of the SDK are off, because the second request would fail its
// condition if the first one was applied and only its answer was lost. This package sends a request again only if the
// first one had no effect, for one of four reasons: no connection was made, the bytes were damaged in transit, the
// clock of this host was wrong and the answer corrected it, or other credentials were loaded. If the store is busy, a
// Delete is sent again after a pause. A Put is not, because its caller may have newer data by then. The store checks
// every body against its CRC-32C.
//
//	answer                                                outcome
//	412, 404 NoSuchKey under IfMatch                      ErrPrecondition, not applied
//	409 ConditionalRequestConflict or OperationAborted    ErrBusy, not applied
//	429, SlowDown and similar codes                       ErrBusy, not applied; see Pace
//	501 NotImplemented under a condition                  ErrNoCAS, not applied
//	ExpiredToken, InvalidAccessKeyId and similar codes    not applied; see Credentials
//	no bucket, wrong region, no permission, other 4xx     an error with the reason, not applied
//	other 5xx, 408, an answer that is not S3's own        unknown
//	reset, timeout, answer cut short, context cancelled   unknown
//
// # Reading
//
// A read that failed in transit is sent again, after a growing pause with jitter, up to Options.Attempts attempts in
// all. A whole object is checked against the checksum that the store keeps. The error of a missing bucket is not
// ErrNotExist.
//
// # Pace
//
// Some stores accept about one write per second to one key (Cloudflare R2, Google Cloud Storage). Options.Rate limits
// the writes to each key. Without it, after the store has throttled a key, writes to that key are one second apart.
//
// # Credentials
//
// Credentials come from the default chain of the SDK (environment, shared files, web identity, instance) or from
// Options.Config. An address cannot contain them. If the store answers that the credentials have expired, are unknown
// or are wrong, the package loads them again from their source, at most once per second and once for all requests under
// way, and sends the request once more. So a process continues after a rotation of credentials.
//
// # Versions
//
// A version is the ETag without its quotes. It is opaque: equal bytes may have equal versions.
//
// # Addresses
//
// The package registers the scheme "s3" with backend.Open:
//
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket?endpoint=https://s3.example.com&region=auto&path-style=true&rate=1
//	s3://bucket/team?sse=aws:kms&kms-key=alias/coppice&storage-class=STANDARD_IA&request-payer=requester
package s3

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/coppice-go/coppice/backend"
)

// Options are the settings of Open. The zero value of each field is its default.
type Options struct {
	Region    string // "" = the SDK's; us-east-1 if an Endpoint is set and the SDK has none
	Endpoint  string // URL of a store other than Amazon's; "" = the SDK's
	PathStyle bool   // put the bucket in the path of the URL; false = in the host name

	SSE           string // "AES256", "aws:kms" or "aws:kms:dsse"; "" = the bucket's default
	KMSKey        string // key of SSE by KMS: id, ARN or alias; "" = Amazon's own
	StorageClass  string // of new objects; "" = the store's default
	RequesterPays bool   // the caller pays for requests to the bucket

	Rate     float64       // maximum number of writes per second to one key; 0 = no limit
	Attempts int           // maximum number of attempts of a read, or of a write that had no effect; 0 = 5
	Timeout  time.Duration // maximum duration of one attempt, without one more second per MiB of body; 0 = 15 s

	// Config replaces the default chain of the SDK. An HTTP client in it must not retry requests. nil = default chain.
	Config *aws.Config

	Now   func() time.Time                                 // spaces writes and reloads of credentials; nil = time.Now
	Sleep func(ctx context.Context, d time.Duration) error // nil = a timer
	Seed  uint64                                           // of the jitter of pauses; 0 = random
}

// Backend is a bucket. Safe for concurrent use.
type Backend struct {
	bucket string
	o      Options
	client *s3.Client
	http   *http.Client // nil if the caller's own is used
	keys   *keyring     // credentials; nil if requests are not signed
	pace   pace
	known  atomic.Bool // whether an answer has proved that the bucket exists

	randMu sync.Mutex
	rand   *rand.Rand // of the jitter

	life  context.Context //nolint:containedctx // done after Close: ends the waits of callers
	end   context.CancelFunc
	mu    sync.Mutex
	calls sync.WaitGroup // requests under way; Close waits for them
}

var _ backend.Backend = (*Backend)(nil)

// Open returns a backend for an existing bucket. It sends no request, so a missing bucket is an error of the first
// call. A nil o means the defaults.
func Open(ctx context.Context, bucket string, o *Options) (*Backend, error) {
	b := &Backend{bucket: bucket}
	if o != nil {
		b.o = *o
	}
	if err := b.o.complete(); err != nil {
		return nil, fail("open", "", backend.NotApplied, err)
	}
	if bucket == "" {
		return nil, fail("open", "", backend.NotApplied, errors.New("no bucket"))
	}
	cfg, err := b.o.config(ctx)
	if err != nil {
		return nil, fail("open", "", backend.NotApplied, err)
	}
	if b.keys = newKeyring(cfg, &b.o); b.keys != nil {
		cfg.Credentials = b.keys
	}
	sender := sender{next: cfg.HTTPClient}
	if own, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok || cfg.HTTPClient == nil {
		b.http = ownClient(own)
		sender.next = b.http
	}
	b.client = s3.NewFromConfig(cfg, func(so *s3.Options) {
		so.HTTPClient = sender
		so.HTTPSignerV4 = &signer{}
		so.Retryer = aws.NopRetryer{}
		so.UsePathStyle = b.o.PathStyle
		if b.o.Endpoint != "" {
			so.BaseEndpoint = aws.String(b.o.Endpoint)
		}
		if so.AppID == "" {
			so.AppID = "coppice"
		}
		// Without these the SDK adds and checks other checksums from call to call ("when supported").
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		so.DisableLogOutputChecksumValidationSkipped = true
	})
	b.life, b.end = context.WithCancel(context.Background())
	b.rand = rand.New(rand.NewPCG(b.o.Seed, 2))
	b.pace.start(&b.o)
	return b, nil
}

// complete sets defaults for zero fields and returns an error for invalid ones.
func (o *Options) complete() error {
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default clock: it only spaces requests and reloads (I12)
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Seed == 0 {
		o.Seed = maphash.String(maphash.MakeSeed(), "jitter")
	}
	switch {
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("rate %v: want the writes per second for one key", o.Rate)
	case o.SSE != "" && o.SSE != "AES256" && o.SSE != "aws:kms" && o.SSE != "aws:kms:dsse":
		return fmt.Errorf("sse %q: want AES256, aws:kms or aws:kms:dsse", o.SSE)
	case o.KMSKey != "" && !o.kms():
		return errors.New("a KMS key without sse aws:kms or aws:kms:dsse")
	case o.Endpoint == "":
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return fmt.Errorf("endpoint %.200q: want http://host:port or https://host:port", backend.Redacted(o.Endpoint))
	}
	return nil
}

func (o *Options) kms() bool { return o.SSE == "aws:kms" || o.SSE == "aws:kms:dsse" }

// config returns the configuration of the SDK: a copy of o.Config, or what the default chain loads. The region is that
// of o, else that of the configuration; with an Endpoint and no region it is us-east-1.
func (o *Options) config(ctx context.Context) (aws.Config, error) {
	var cfg aws.Config
	if o.Config != nil {
		cfg = o.Config.Copy()
	} else {
		var err error
		if cfg, err = loadChain(ctx); err != nil {
			return cfg, err
		}
	}
	if o.Region != "" {
		cfg.Region = o.Region
	}
	if cfg.Region == "" {
		if o.Endpoint == "" && cfg.BaseEndpoint == nil {
			return cfg, errors.New("no region: set it in the address (region=) or in AWS_REGION")
		}
		cfg.Region = "us-east-1"
	}
	return cfg, nil
}

// ownClient returns an HTTP client that does not follow redirects, because net/http sends a redirected PUT as a GET.
func ownClient(from *awshttp.BuildableClient) *http.Client {
	if from == nil {
		from = awshttp.NewBuildableClient()
	}
	transport := from.GetTransport()
	transport.MaxIdleConnsPerHost = 64
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close waits for the requests under way. A call that waits because of Rate ends with ErrClosed.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.calls.Wait()
	if b.http != nil {
		b.http.CloseIdleConnections()
	}
	return nil
}

// enter registers a call, so that Close waits for it. If it returns nil the caller must call leave. It returns an error
// with the outcome NotApplied after Close, for an invalid key, and for a ctx that is done. The operation "list" has no
// key.
func (b *Backend) enter(ctx context.Context, op, key string) error {
	if op != "list" {
		if err := backend.ValidKey(key); err != nil {
			return fail(op, key, backend.NotApplied, errors.Unwrap(err))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return fail(op, key, backend.NotApplied, backend.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fail(op, key, backend.NotApplied, err)
	}
	b.calls.Add(1)
	return nil
}

func (b *Backend) leave() { b.calls.Done() }

func fail(op, key string, out backend.Outcome, err error) error {
	return &backend.Error{Op: op, Key: key, Outcome: out, Err: err}
}
