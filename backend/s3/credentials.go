package s3

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// reloadGap bounds how often the credentials are loaded again: if a store refuses all of them, not every request may
// cause one to the service that issues them.
const reloadGap = time.Second

// keyring provides the credentials of all requests, and replaces them after the store has refused them.
type keyring struct {
	chain bool // the SDK's default chain; otherwise the provider of Options.Config
	now   func() time.Time
	limit time.Duration // of one reload

	mu       sync.Mutex
	provider aws.CredentialsProvider
	version  int // counts the replacements

	reload chan struct{} // capacity 1; holds a token while one caller reloads
	last   time.Time     // end of the last reload; guarded by reload
	err    error         // of the last reload; guarded by reload
}

// signature is the credentials that an attempt was signed with.
type signature struct {
	version int
	keys    aws.Credentials // zero if there were none
}

// newKeyring returns nil if requests are not signed.
func newKeyring(cfg aws.Config, o *Options) *keyring {
	if cfg.Credentials == nil || aws.IsCredentialsProvider(cfg.Credentials, (*aws.AnonymousCredentials)(nil)) {
		return nil
	}
	return &keyring{
		chain: o.Config == nil, now: o.Now, limit: o.Timeout,
		provider: cfg.Credentials, reload: make(chan struct{}, 1),
	}
}

// Retrieve returns the credentials for a request, and records them in its attempt.
func (k *keyring) Retrieve(ctx context.Context) (aws.Credentials, error) {
	provider, version := k.current()
	keys, err := provider.Retrieve(ctx)
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		a.signed = signature{version: version, keys: keys}
	}
	return keys, err
}

func (k *keyring) current() (aws.CredentialsProvider, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.provider, k.version
}

// renew reports whether there are other credentials than those of a refused attempt. It loads them again, unless
// another caller did so since the attempt began: of many attempts that fail at once, one reloads, and the others wait
// for its result. An error is that of the reload.
func (k *keyring) renew(ctx context.Context, refused signature) (bool, error) {
	select {
	case k.reload <- struct{}{}:
		defer func() { <-k.reload }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	provider, version := k.current()
	if version != refused.version {
		return true, nil
	}
	if since := k.now().Sub(k.last); since >= 0 && since < reloadGap {
		return false, k.err
	}
	limited, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	provider, keys, err := k.load(limited, provider)
	if ctx.Err() != nil {
		return false, ctx.Err() // this caller's own: the next one reloads
	}
	k.last, k.err = k.now(), err
	if err != nil || sameKeys(keys, refused.keys) {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.provider, k.version = provider, version+1
	return true, nil
}

// load reads the credentials from their source. The default chain is built again, because the SDK reads the shared
// files only then.
func (k *keyring) load(
	ctx context.Context, provider aws.CredentialsProvider,
) (aws.CredentialsProvider, aws.Credentials, error) {
	if k.chain {
		cfg, err := loadChain(ctx)
		if err != nil {
			return nil, aws.Credentials{}, err
		}
		provider = cfg.Credentials
	} else if cache, ok := provider.(interface{ Invalidate() }); ok {
		cache.Invalidate()
	}
	keys, err := provider.Retrieve(ctx)
	return provider, keys, err
}

func loadChain(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return cfg, fmt.Errorf("load the SDK's configuration: %w", err)
	}
	return cfg, nil
}

func sameKeys(a, b aws.Credentials) bool {
	return a.AccessKeyID == b.AccessKeyID && a.SecretAccessKey == b.SecretAccessKey && a.SessionToken == b.SessionToken
}

// renew reports whether a call with refused credentials may be tried once more with others. It returns true at most
// once for each call; otherwise it adds a hint to the cause.
func (b *Backend) renew(ctx context.Context, a *attempt, v *verdict, renewed *bool) bool {
	if b.keys == nil {
		return false
	}
	if !*renewed {
		*renewed = true
		ok, err := b.keys.renew(ctx, a.signed)
		if ok {
			return true
		}
		if err != nil {
			v.cause = fmt.Errorf("%w; reloading the credentials failed: %w", v.cause, err)
			return false
		}
	}
	if source := a.signed.keys.Source; source != "" {
		v.cause = fmt.Errorf("%w; %s", v.cause, b.keys.advice(source))
	}
	return false
}

// advice returns a hint for credentials that the store refuses and whose source has no others.
func (k *keyring) advice(source string) string {
	file, shared := strings.CutPrefix(source, "SharedConfigCredentials: ")
	switch {
	case !k.chain:
		return fmt.Sprintf("Options.Config has no others (%s): renew them there, or open the store again", source)
	case source == config.CredentialsSourceName:
		return "they come from the environment, which cannot change: restart with new ones, or use a file or a role"
	case shared:
		return fmt.Sprintf("write new ones to %s: requests read the file again, without a restart", file)
	}
	return fmt.Sprintf("their source has no others (%s): renew them there, without a restart", source)
}

// outdated are the codes of a store, or of a token service, that does not know or no longer accepts the credentials,
// with the meaning of each. A request with one of these answers had no effect. AccessDenied is not among them: other
// credentials of the same user are refused as well.
var outdated = map[string]string{
	"ExpiredToken":                "the credentials have expired",
	"ExpiredTokenException":       "the credentials have expired",
	"RequestExpired":              "the credentials have expired",
	"TokenRefreshRequired":        "the session token must be refreshed",
	"InvalidToken":                "the session token is not valid",
	"InvalidAccessKeyId":          "the access key is unknown or was revoked",
	"InvalidClientTokenId":        "the access key is unknown or was revoked",
	"UnrecognizedClientException": "the access key is unknown or was revoked",
	"XAdminUserNotFound":          "the access key is unknown or was revoked", // versitygw, with 404
	"InvalidSecurity":             "the credentials are not valid",
	"Unauthorized":                "the credentials are not valid",
	"SignatureDoesNotMatch":       "the secret key does not belong to the access key",
}
