package s3

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/coppice-go/coppice/backend"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Put replaces or creates an object: one request, one outcome.
func (b *Backend) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if err := b.enter(ctx, "put", key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	if len(p) > backend.MaxObjectSize {
		return backend.Info{}, fail("put", key, backend.NotApplied, tooLarge(int64(len(p))))
	}
	in := b.putInput(key, p)
	match, conditional := c.Match()
	switch {
	case c.Absent():
		in.IfNoneMatch, conditional = aws.String("*"), true
	case conditional && !writable(match):
		err := fmt.Errorf("%w: no object has the version %.80q", backend.ErrPrecondition, string(match))
		return backend.Info{}, fail("put", key, backend.NotApplied, err)
	case conditional:
		in.IfMatch = aws.String(`"` + string(match) + `"`)
	}
	info := backend.Info{Key: key, Size: int64(len(p))}
	err := b.write(ctx, "put", key, len(p), false, func(a *attempt) error {
		in.Body = bytes.NewReader(p) // the SDK lets no HTTP client read it after PutObject has returned
		out, err := b.client.PutObject(a.ctx, in)
		if err != nil {
			return err
		}
		if info.Version = etag(out.ETag); info.Version == "" {
			return errNoVersion
		}
		return nil
	})
	if err != nil {
		return backend.Info{}, conditioned(err, key, in.IfMatch != nil, conditional)
	}
	return info, nil
}

// errNoVersion: the write was acknowledged without the version that the next condition needs. As after a lost answer,
// the caller has to read.
var errNoVersion = errors.New("the response has no ETag")

// conditioned returns the error of an answer whose meaning depends on the condition.
func conditioned(err error, key string, match, conditional bool) error {
	s, answered := errors.AsType[*answer](err)
	switch {
	case match && errors.Is(err, fs.ErrNotExist):
		// S3 answers 404 if the object of an IfMatch is missing, other stores 412. The error must not be ErrNotExist,
		// or a caller would take the object for one that never existed.
		return fail("put", key, backend.NotApplied,
			fmt.Errorf("%w: there is no object: %w", backend.ErrPrecondition, s))
	case answered && conditional && s.code == "NotImplemented":
		return fail("put", key, backend.NotApplied, fmt.Errorf("%w: %w", backend.ErrNoCAS, s))
	}
	return err
}

// putInput returns the request of a Put, without its condition. The checksum is a header: a checksum in a trailer, the
// SDK's default over TLS, needs a framing that not every store supports.
func (b *Backend) putInput(key string, p []byte) *s3.PutObjectInput {
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(p, castagnoli))
	in := &s3.PutObjectInput{
		Bucket: aws.String(b.bucket), Key: aws.String(key),
		ContentLength:     aws.Int64(int64(len(p))),
		ContentType:       aws.String("application/octet-stream"),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
		ChecksumCRC32C:    aws.String(base64.StdEncoding.EncodeToString(sum)),
		RequestPayer:      b.payer(),
		StorageClass:      types.StorageClass(b.o.StorageClass),

		ServerSideEncryption: types.ServerSideEncryption(b.o.SSE),
	}
	if b.o.kms() {
		in.BucketKeyEnabled = aws.Bool(b.o.SSE == "aws:kms")
		if b.o.KMSKey != "" {
			in.SSEKMSKeyId = aws.String(b.o.KMSKey)
		}
	}
	return in
}

func (b *Backend) payer() types.RequestPayer {
	if b.o.RequesterPays {
		return types.RequestPayerRequester
	}
	return ""
}

// writable reports whether a version can be used in a condition, where "*" and a quote have another meaning. Every
// version that this package returns is valid.
func writable(v backend.Version) bool {
	return v != "" && v != "*" &&
		strings.IndexFunc(string(v), func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' }) < 0
}

// Delete removes an object. A request that may have had its effect is not sent again: it might remove a later object.
func (b *Backend) Delete(ctx context.Context, key string) error {
	if err := b.enter(ctx, "delete", key); err != nil {
		return err
	}
	defer b.leave()
	in := &s3.DeleteObjectInput{Bucket: aws.String(b.bucket), Key: aws.String(key), RequestPayer: b.payer()}
	err := b.write(ctx, "delete", key, 0, true, func(a *attempt) error {
		_, err := b.client.DeleteObject(a.ctx, in)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func tooLarge(size int64) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", backend.ErrTooLarge, size, int64(backend.MaxObjectSize))
}
