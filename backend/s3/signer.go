package s3

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// signer signs requests. The SDK's signer caches derived keys by the access key alone, for a day: after the secret of
// an access key has changed it would sign with the old one. So each secret has its own signer.
type signer struct {
	mu     sync.Mutex
	secret string
	sdk    *v4.Signer // of the secret
}

// SignHTTP signs a request.
func (s *signer) SignHTTP(
	ctx context.Context, keys aws.Credentials, r *http.Request, payloadHash, service, region string, at time.Time,
	options ...func(*v4.SignerOptions),
) error {
	return s.of(keys.SecretAccessKey).SignHTTP(ctx, keys, r, payloadHash, service, region, at, options...)
}

func (s *signer) of(secret string) *v4.Signer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sdk == nil || s.secret != secret {
		s.secret = secret
		s.sdk = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // path encoding of S3
	}
	return s.sdk
}
