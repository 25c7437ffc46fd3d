package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/coppice-go/coppice/backend"
)

// Get reads an object or a part of it: one request, unless it fails in transit.
func (b *Backend) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if err := b.enter(ctx, "get", key); err != nil {
		return nil, backend.Info{}, err
	}
	defer b.leave()
	w, err := want(r)
	if err != nil {
		return nil, backend.Info{}, fail("get", key, backend.NotApplied, fmt.Errorf("%s: %w", r, err))
	}
	if w.sizeOnly {
		return b.getNothing(ctx, key, r)
	}
	in := &s3.GetObjectInput{Bucket: aws.String(b.bucket), Key: aws.String(key), RequestPayer: b.payer()}
	validate := aws.ResponseChecksumValidationWhenRequired
	if w.header == "" {
		in.ChecksumMode, validate = types.ChecksumModeEnabled, aws.ResponseChecksumValidationWhenSupported
	} else {
		in.Range = aws.String(w.header)
	}
	var p []byte
	info := backend.Info{Key: key}
	err = b.read(ctx, "get", key, func(a *attempt) error {
		out, err := b.client.GetObject(a.ctx, in, func(o *s3.Options) { o.ResponseChecksumValidation = validate })
		if err != nil {
			return err
		}
		defer out.Body.Close()
		info.Version, info.ModTime = etag(out.ETag), when(out.LastModified)
		p, info.Size, err = take(a, out, r, w)
		return err
	})
	if w.tail && errors.Is(err, backend.ErrRange) {
		return b.getShort(ctx, key, r)
	}
	if err != nil {
		return nil, backend.Info{}, err
	}
	return p, info, nil
}

// getNothing is a Get of a range without bytes, which needs only the object's size, or of one larger than any object.
func (b *Backend) getNothing(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	info, err := b.stat(ctx, "get", key)
	if err != nil {
		return nil, backend.Info{}, err
	}
	_, n, err := r.Resolve(info.Size)
	switch {
	case err != nil:
		err = fmt.Errorf("%s of %d: %w", r, info.Size, err)
	case n > backend.MaxObjectSize:
		err = tooLarge(n)
	default:
		return []byte{}, info, nil
	}
	return nil, backend.Info{}, fail("get", key, backend.NotApplied, err)
}

// getShort is a tail of an object for which the store refused the range: an empty object has no last byte, and some
// stores refuse every tail that is longer than the object.
func (b *Backend) getShort(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	info, err := b.stat(ctx, "get", key)
	switch {
	case err != nil:
		return nil, backend.Info{}, err
	case info.Size == 0:
		return []byte{}, info, nil
	}
	p, info, err := b.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, backend.Info{}, err
	}
	off, n, err := r.Resolve(info.Size)
	if err != nil {
		return nil, backend.Info{}, fail("get", key, backend.NotApplied, fmt.Errorf("%s of %d: %w", r, info.Size, err))
	}
	return p[off : off+n : off+n], info, nil
}

// wanted is a range in the form of a request.
type wanted struct {
	header   string // "" = the whole object
	tail     bool
	sizeOnly bool // only the object's size is needed, no byte
}

// want resolves a range in objects of two sizes to determine its kind: a tail moves with the size.
func want(r backend.Range) (wanted, error) {
	if r.Whole() {
		return wanted{}, nil
	}
	off, n, err := r.Resolve(math.MaxInt64)
	if err != nil {
		return wanted{}, err
	}
	off2, n2, err := r.Resolve(math.MaxInt64 - 1)
	if tail := err == nil && (off2 != off || n2 != n); tail {
		n = min(n, backend.MaxObjectSize+1) // one more shows that the object is too large
		return wanted{header: fmt.Sprintf("bytes=-%d", n), tail: n > 0, sizeOnly: n == 0}, nil
	}
	if n == 0 || n > backend.MaxObjectSize {
		return wanted{sizeOnly: true}, nil
	}
	return wanted{header: fmt.Sprintf("bytes=%d-%d", off, off+n-1)}, nil
}

// take reads the body of an answer and cuts it to the range, in case the store has sent more.
func take(a *attempt, out *s3.GetObjectOutput, r backend.Range, w wanted) (p []byte, size int64, err error) {
	length := int64(-1)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if length > backend.MaxObjectSize {
		return nil, 0, final{tooLarge(length)}
	}
	a.extend(int(max(length, 0)))
	if p, err = readBody(out.Body, length); err != nil {
		return nil, 0, err
	}
	size, first := int64(len(p)), int64(0)
	if w.header != "" && out.ContentRange != nil {
		if first, size, err = contentRange(*out.ContentRange, int64(len(p))); err != nil {
			return nil, 0, err
		}
	}
	off, n, err := r.Resolve(size)
	if err != nil {
		return nil, 0, final{fmt.Errorf("%s of %d: %w", r, size, err)}
	}
	if off < first || off+n > first+int64(len(p)) {
		return nil, 0, fmt.Errorf("asked for %s of %d and got %d bytes from %d", r, size, len(p), first)
	}
	return p[off-first : off-first+n : off-first+n], size, nil
}

// readBody reads to the end, where the SDK compares the checksum. length -1 = unknown.
func readBody(r io.Reader, length int64) ([]byte, error) {
	if length < 0 {
		p, err := io.ReadAll(io.LimitReader(r, backend.MaxObjectSize+1))
		if err == nil && len(p) > backend.MaxObjectSize {
			err = final{tooLarge(int64(len(p)))}
		}
		return p, err
	}
	p := make([]byte, length)
	if _, err := io.ReadFull(r, p); err != nil {
		return nil, fmt.Errorf("body of %d bytes: %w", length, noEOF(err))
	}
	var more [1]byte
	for {
		switch n, err := r.Read(more[:]); {
		case n > 0:
			return nil, fmt.Errorf("body is longer than its content length of %d bytes", length)
		case errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return nil, err
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// contentRange parses "bytes 0-9/100" for a body of n bytes: its first byte, and the size of the object.
func contentRange(text string, n int64) (first, size int64, err error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, to, ok2 := strings.Cut(span, "-")
	first, err = strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if err := errors.Join(err, err2, err3); err != nil || !ok || !ok2 || first < 0 || last-first+1 != n ||
		last >= size {
		return 0, 0, fmt.Errorf("content range %.100q of %d bytes", text, n)
	}
	return first, size, nil
}

func when(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Stat returns the Info that Get would return.
func (b *Backend) Stat(ctx context.Context, key string) (backend.Info, error) {
	if err := b.enter(ctx, "stat", key); err != nil {
		return backend.Info{}, err
	}
	defer b.leave()
	return b.stat(ctx, "stat", key)
}

func (b *Backend) stat(ctx context.Context, op, key string) (backend.Info, error) {
	info := backend.Info{Key: key}
	err := b.read(ctx, op, key, func(a *attempt) error {
		out, err := b.head(a.ctx, key)
		if err != nil {
			return err
		}
		info.Size = aws.ToInt64(out.ContentLength)
		info.Version, info.ModTime = etag(out.ETag), when(out.LastModified)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && !b.known.Load() {
		return backend.Info{}, b.whichIsMissing(ctx, op, key, err)
	}
	if err != nil {
		return backend.Info{}, err
	}
	return info, nil
}

// head requests the metadata of an object. A refusal has no body, and so no code: a GET of one byte learns from its own
// refusal whether the credentials are the reason. If it is not refused, the HEAD is sent once more.
func (b *Backend) head(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	in := &s3.HeadObjectInput{Bucket: aws.String(b.bucket), Key: aws.String(key), RequestPayer: b.payer()}
	out, err := b.client.HeadObject(ctx, in)
	refusal := answered(err)
	if refusal == nil || refusal.status != http.StatusBadRequest && refusal.status != http.StatusForbidden {
		return out, err
	}
	asked := b.ask(ctx, key)
	s := answered(asked)
	switch {
	case s == nil && asked != nil:
		return nil, err
	case s == nil || s.status != refusal.status:
		return b.client.HeadObject(ctx, in)
	case s.code == "":
		return nil, err
	}
	return nil, asked
}

// ask reads the first byte of an object, for the error code that a HEAD cannot return.
func (b *Backend) ask(ctx context.Context, key string) error {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(b.bucket), Key: aws.String(key), Range: aws.String("bytes=0-0"), RequestPayer: b.payer(),
	})
	if err != nil {
		return err
	}
	return out.Body.Close()
}

// whichIsMissing determines, once, whether the object or the bucket is missing: the answer to a HEAD has no body with a
// code.
func (b *Backend) whichIsMissing(ctx context.Context, op, key string, err error) error {
	asked := b.read(ctx, op, key, func(a *attempt) error { return b.ask(a.ctx, key) })
	if s, ok := errors.AsType[*answer](asked); ok && s.code == "NoSuchBucket" {
		return asked
	}
	return err
}
