package s3

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/coppice-go/coppice/backend"
)

const pageMost = 1000 // maximum of S3

// List yields the objects below a prefix: one request for each 1,000 results.
func (b *Backend) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		if err := b.list(ctx, o, yield); err != nil {
			yield(backend.Info{}, err)
		}
	}
}

// list yields page by page. A nil error also means that the loop was left.
func (b *Backend) list(ctx context.Context, o backend.ListOptions, yield func(backend.Info, error) bool) error {
	if o.Delimiter != "" && o.Delimiter != "/" {
		return fail("list", o.Prefix, backend.NotApplied,
			fmt.Errorf("delimiter %q is neither empty nor \"/\"", o.Delimiter))
	}
	in := &s3.ListObjectsV2Input{Bucket: aws.String(b.bucket), RequestPayer: b.payer()}
	if o.Prefix != "" {
		in.Prefix = aws.String(o.Prefix)
	}
	if o.Delimiter != "" {
		in.Delimiter = aws.String(o.Delimiter)
	}
	if o.After != "" {
		in.StartAfter = aws.String(o.After)
	}
	last, given, none := o.After, 0, !startsKey(o.Prefix)
	for {
		if o.Limit > 0 {
			// One more: the common prefix that contains After is returned once again, and is left out.
			in.MaxKeys = aws.Int32(int32(min(o.Limit-given+1, pageMost)))
		}
		infos, next, err := b.page(ctx, in, none)
		if err != nil {
			return err
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				return fail("list", o.Prefix, backend.NotApplied, err)
			}
			if info.Key <= last {
				if info.Key > o.After && info.Key < last {
					return fail("list", o.Prefix, backend.NotApplied,
						fmt.Errorf("%q comes after %q: this store does not list in order", info.Key, last))
				}
				continue
			}
			last = info.Key
			if !yield(info, nil) {
				return nil
			}
			if given++; given == o.Limit {
				return nil
			}
		}
		if next == nil {
			return nil
		}
		in.ContinuationToken, in.StartAfter = next, nil
	}
}

// page requests one page; next is nil for the last. It calls enter itself, so that the body of a loop over a listing
// may close the backend.
func (b *Backend) page(
	ctx context.Context, in *s3.ListObjectsV2Input, none bool,
) (infos []backend.Info, next *string, err error) {
	prefix := aws.ToString(in.Prefix)
	if err := b.enter(ctx, "list", prefix); err != nil {
		return nil, nil, err
	}
	defer b.leave()
	if none {
		return nil, nil, nil
	}
	var out *s3.ListObjectsV2Output
	err = b.read(ctx, "list", prefix, func(a *attempt) (err error) {
		out, err = b.client.ListObjectsV2(a.ctx, in)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range out.Contents {
		if backend.ValidKey(aws.ToString(c.Key)) == nil { // objects that are not keys cannot be read either
			infos = append(infos, backend.Info{
				Key: *c.Key, Size: aws.ToInt64(c.Size), Version: etag(c.ETag), ModTime: when(c.LastModified),
			})
		}
	}
	for _, p := range out.CommonPrefixes {
		if key := aws.ToString(p.Prefix); backend.ValidKey(strings.TrimSuffix(key, "/")) == nil {
			infos = append(infos, backend.Info{Key: key, Prefix: true})
		}
	}
	slices.SortFunc(infos, func(x, y backend.Info) int { return strings.Compare(x.Key, y.Key) })
	if aws.ToBool(out.IsTruncated) {
		if next = out.NextContinuationToken; aws.ToString(next) == "" {
			return nil, nil, fail("list", prefix, backend.NotApplied,
				fmt.Errorf("a truncated page has no continuation token"))
		}
	}
	return infos, next, nil
}

// startsKey reports whether a valid key can begin with prefix. Other prefixes are not sent: a store may interpret ".."
// or "//".
func startsKey(prefix string) bool {
	return backend.ValidKey(prefix+"x") == nil || backend.ValidKey(prefix) == nil
}
