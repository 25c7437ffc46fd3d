package s3_test

import (
	"context"
	"fmt"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/s3"
)

// A bucket with options that a URL cannot contain. s3://bucket/prefix?region=... opens one without this package.
func ExampleOpen() {
	bucket, err := s3.Open(context.Background(), "sessions", &s3.Options{
		Region: "eu-west-1", SSE: "aws:kms", StorageClass: "INTELLIGENT_TIERING",
	})
	if err != nil { // no request is sent before the bucket is used
		panic(err)
	}
	store, err := coppice.New(backend.WithPrefix(bucket, "tenant-7"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Close())
	// Output:
	// <nil>
}
