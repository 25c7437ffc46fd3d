// Package s3 stores objects in a bucket of Amazon S3, or of a compatible store that honours conditional writes. A call
// reported as done was answered with success by the store; one reported as not applied never was and never will be
// applied; anything else has the outcome Unknown.
//
// # Writing
//
// A Put or Delete is one request: the SDK's own retries are off, since they turn a lost answer into a failed condition
// of our own write. A request is sent again only if it certainly had no effect: no connection was made, the bytes were
// damaged in transit, this host's clock was corrected by the answer, or other credentials were loaded. If the store is
// busy, a Delete is sent again after a pause, and a Put is not: its caller may have newer data by then. Every body has
// its CRC-32C, which the store checks.
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
// Reads that failed in transit are retried, with a growing, jittered pause, at most Options.Attempts times. A whole
// object is checked against the checksum that the store keeps. A missing bucket is an error of its own, never
// ErrNotExist.
//
// # Pace
//
// Some stores accept about one write a second to a key (Cloudflare R2, Google Cloud Storage). Options.Rate spaces the
// writes to one key; without it the writes to a throttled key are spaced by a second.
//
// # Credentials
//
// They are read from the SDK's default chain (environment, shared files, web identity, instance) or from
// Options.Config, and cannot be in an address. When the store answers that they have expired, are unknown or are wrong,
// they are loaded again from their source, at most once a second and once for all requests under way, and the request
// is sent once more. So a process survives a rotation.
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
	PathStyle bool   // the bucket is in the path, not in the host name

	SSE           string // "AES256", "aws:kms" or "aws:kms:dsse"; "" = the bucket's default
	KMSKey        string // key of SSE by KMS: id, ARN or alias; "" = Amazon's own
	StorageClass  string // of new objects; "" = the store's default
	RequesterPays bool   // the caller pays for requests to the bucket

	Rate     float64       // writes a second to one key; 0 = no limit
	Attempts int           // of a read, and of a write that certainly was not sent; 5
	Timeout  time.Duration // of one attempt, plus a second for each MiB; 15 s

	// Config is used instead of the SDK's default chain. An HTTP client in it must not retry by itself.
	Config *aws.Config

	Now   func() time.Time                                 // clock of the pace and of reloads; time.Now
	Sleep func(ctx context.Context, d time.Duration) error // a timer
	Seed  uint64                                           // of the jitter; 0 = random
}

// Backend is a bucket. Safe for concurrent use.
type Backend struct {
	bucket string
	o      Options
	client *s3.Client
	http   *http.Client // nil if the caller's own is used
	keys   *keyring     // nil if requests are not signed
	pace   pace
	known  atomic.Bool // an answer proved that the bucket exists

	randMu sync.Mutex
	rand   *rand.Rand // of the jitter

	life  context.Context //nolint:containedctx // ends with Close: the caller that waits then wakes up
	end   context.CancelFunc
	mu    sync.Mutex
	calls sync.WaitGroup // requests under way; Close waits for them
}

var _ backend.Backend = (*Backend)(nil)

// Open returns a backend for a bucket, which has to exist. It sends no request. Nil options are the defaults.
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
		// Unset, the SDK checks nothing; the default of "when supported" differs from call to call.
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		so.DisableLogOutputChecksumValidationSkipped = true
	})
	b.life, b.end = context.WithCancel(context.Background())
	b.rand = rand.New(rand.NewPCG(b.o.Seed, 2))
	b.pace.start(&b.o)
	return b, nil
}

// complete checks the options and fills in the defaults.
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

// config returns the SDK's configuration: the caller's, else that of the default chain.
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

// ownClient returns an HTTP client that follows no redirect: a PUT would be sent as a GET.
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

// Close waits for the requests under way; calls that wait for their pace end with ErrClosed.
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

// enter begins a call; each successful enter needs a leave. A closed handle, a bad key or a done context has no effect.
// A listing has no key.
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
