package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/coppice-go/coppice/backend"
)

// verdict is the meaning of a failed attempt.
type verdict struct {
	cause   error
	outcome backend.Outcome // of a write
	again   bool            // another attempt may succeed
	slow    bool            // the store asks for fewer writes to this key
	renew   bool            // the credentials were refused, and others may be accepted; never with an effect
}

// final is an error of this package: another attempt would return the same.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// classify returns the meaning of the error of an attempt. An answer of the store counts even if ctx is done meanwhile.
func (b *Backend) classify(ctx context.Context, a *attempt, err error) verdict {
	if f, ok := errors.AsType[final](err); ok {
		return verdict{cause: f.error, outcome: backend.NotApplied}
	}
	if other := elsewhere(err); other != nil {
		api, _ := errors.AsType[smithy.APIError](other)
		return verdict{
			renew: api != nil && outdated[api.ErrorCode()] != "",
			cause: fmt.Errorf(
				"no credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile or role): %w", other),
			outcome: backend.NotApplied,
		}
	}
	if s := answered(err); s != nil {
		v := b.classifyAnswer(s)
		if v.outcome == backend.Unknown && ctx.Err() != nil {
			v.cause = fmt.Errorf("%w after %w", ctx.Err(), v.cause)
		}
		return v
	}
	unsent := !a.sent.Load()
	switch cause := context.Cause(a.ctx); {
	case ctx.Err() != nil:
		v := verdict{cause: ctx.Err()}
		if unsent {
			v.outcome = backend.NotApplied
		}
		return v
	case unsent:
		return verdict{cause: fmt.Errorf("the request was not sent: %w", plain(err)), outcome: backend.NotApplied}
	case errors.Is(cause, errTimeout):
		return verdict{cause: fmt.Errorf("%w (%v)", errTimeout, a.limit), again: true}
	case untrusted(err):
		return verdict{cause: plain(err), outcome: backend.NotApplied}
	case unconnected(err):
		return verdict{cause: plain(err), outcome: backend.NotApplied, again: true}
	}
	return verdict{cause: plain(err), again: true}
}

// elsewhere returns the error of another service that was called first: the chain of credentials may call the host's
// metadata service, a token service or a login; nil if there was none. Nothing was sent to the store then, and that
// service's answer must not be taken for the store's.
func elsewhere(err error) error {
	op, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return nil
	}
	if inner, ok := errors.AsType[*smithy.OperationError](op.Err); ok && inner.ServiceID != op.ServiceID {
		return inner
	}
	return nil
}

// unconnected reports whether no connection was made, so that no byte of the request was sent.
func unconnected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// untrusted reports whether the TLS handshake failed, before any byte of the request was sent.
func untrusted(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return certificate || authority || record
}

// plain removes the layers of the SDK that add no information.
func plain(err error) error {
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = op.Err
	}
	if send, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		err = send.Err
	}
	return err
}

// answer is an unsuccessful answer.
type answer struct {
	status  int
	code    string // S3's error code; "" = none
	message string
	request string // the store's id of the request
	region  string // the bucket's region, according to the store
	err     error
}

// answered returns the answer in an error; nil if there was none.
func answered(err error) *answer {
	re, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || re.Response == nil || re.Response.Response == nil || re.HTTPStatusCode() == 0 {
		return nil // status 0 means that there was no answer
	}
	s := &answer{status: re.HTTPStatusCode(), region: re.Response.Header.Get("X-Amz-Bucket-Region"), err: err}
	if own, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		s.request = own.RequestID
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "UnknownError" {
		s.code, s.message = api.ErrorCode(), api.ErrorMessage()
	}
	if s.message == http.StatusText(s.status) &&
		(re.Response.Request == nil || re.Response.Request.Method != http.MethodHead) {
		s.code, s.message = "", "" // made by the SDK from the status: there was no body with a code
	}
	return s
}

func (s *answer) Error() string {
	text := fmt.Sprintf("answer %d", s.status)
	if s.code != "" {
		text += " " + s.code
	}
	if s.message != "" && s.message != s.code {
		text += fmt.Sprintf(": %.300q", s.message)
	}
	if s.status < http.StatusMultipleChoices {
		text += fmt.Sprintf(", not to be read: %v", plain(s.err))
	}
	if s.request != "" {
		text += fmt.Sprintf(" (request %.100s)", s.request)
	}
	return text
}

func (s *answer) Unwrap() error { return s.err }

// classifyAnswer is classify for an answer. Only S3's error code, or a status with a single meaning, proves that a
// write had no effect: a gateway in between may return anything.
func (b *Backend) classifyAnswer(s *answer) verdict {
	not := func(format string, args ...any) verdict {
		return verdict{cause: fmt.Errorf(format, args...), outcome: backend.NotApplied}
	}
	switch {
	case s.code == "NoSuchBucket":
		return not("there is no bucket %q: create it, or correct the address: %w", b.bucket, s)
	case s.status == http.StatusPreconditionFailed:
		b.known.Store(true)
		return not("%w: %w", backend.ErrPrecondition, s)
	case s.code == "NoSuchKey", s.code == "NotFound" && s.status == http.StatusNotFound:
		b.known.Store(s.code == "NoSuchKey" || b.known.Load())
		return not("%w: %w", backend.ErrNotExist, s)
	case s.status == http.StatusRequestedRangeNotSatisfiable:
		return not("%w: %w", backend.ErrRange, s)
	case s.code == "ConditionalRequestConflict", s.code == "OperationAborted":
		v := not("%w: %w", backend.ErrBusy, s)
		v.again = true
		return v
	case s.status == http.StatusTooManyRequests, throttled[s.code]:
		v := not("%w: %w", backend.ErrBusy, s)
		v.again, v.slow = true, true
		return v
	case s.status >= 400 && s.status < 500 && outdated[s.code] != "":
		v := not("%s: %w", outdated[s.code], s)
		v.renew = true
		return v
	case s.status == http.StatusNotImplemented && s.code == "NotImplemented":
		return not("not supported by this store: %w", s)
	case repeatable[s.code]:
		v := not("%w", s)
		v.again = true
		return v
	case s.status >= 500, s.status < 300, s.status == http.StatusRequestTimeout, s.code == "RequestTimeout":
		return verdict{cause: s, again: true}
	case s.code == "":
		return verdict{cause: fmt.Errorf("not an S3 response: %w", s)}
	}
	return b.refused(s, not)
}

// refused returns the error of an answer that another attempt would not change, with a hint.
func (b *Backend) refused(s *answer, not func(string, ...any) verdict) verdict {
	switch {
	case s.region != "" &&
		(s.status < 400 || s.code == "AuthorizationHeaderMalformed" || s.code == "IllegalLocationConstraintException"):
		return not("the bucket is in the region %q: correct the address: %w", s.region, s)
	case s.status == http.StatusForbidden, s.status == http.StatusUnauthorized:
		return not("%w: %w", fs.ErrPermission, s)
	case s.code == "EntityTooLarge":
		return not("%w: %w", backend.ErrTooLarge, s)
	case s.code == "KeyTooLongError":
		return not("%w: %w", backend.ErrKey, s)
	}
	return not("%w", s)
}

// throttled are the codes of a store that asks for fewer requests. It has not processed this one.
var throttled = map[string]bool{
	"SlowDown": true, "SlowDownRead": true, "SlowDownWrite": true, "TooManyRequests": true,
	"Throttling": true, "ThrottlingException": true, "ThrottledException": true,
	"RequestThrottled": true, "RequestThrottledException": true, "RequestLimitExceeded": true,
}

// repeatable are codes that refuse only these bytes: the SDK has corrected its clock by the answer, and damage in
// transit may not recur.
var repeatable = map[string]bool{
	"RequestTimeTooSkewed": true, "BadDigest": true, "InvalidDigest": true,
	"XAmzContentSHA256Mismatch": true, "XAmzContentChecksumMismatch": true, "IncompleteBody": true,
}

// etag returns a version as the store wrote it, without quotes.
func etag(tag *string) backend.Version {
	if tag == nil {
		return ""
	}
	return backend.Version(strings.Trim(*tag, `"`))
}
