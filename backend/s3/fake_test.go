package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const testBucket = "bucket"

// fake implements the part of S3 that the driver uses, with one bucket in memory.
type fake struct {
	mu      sync.Mutex
	objects map[string]fakeObject
	log     []*http.Request // headers and addresses, without the bodies
}

type fakeObject struct {
	body []byte
	sum  string // CRC-32C as the client sent it
	time time.Time
}

func (o fakeObject) etag() string {
	sum := md5.Sum(o.body)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func newFake() *fake { return &fake{objects: map[string]fakeObject{}} }

// serve starts a server around h, and closes it with the test.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// testConfig has artificial credentials, and does not read the environment.
func testConfig() *aws.Config {
	return &aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")}
}

// dial opens the bucket of a server, without pauses.
func dial(t testing.TB, url string, change func(o *Options)) *Backend {
	t.Helper()
	o := &Options{Endpoint: url, PathStyle: true, Config: testConfig(), Sleep: noSleep, Seed: 1}
	if change != nil {
		change(o)
	}
	b, err := Open(t.Context(), testBucket, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// refuse answers with an error of S3.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "REQ1")
	w.WriteHeader(status)
	if code != "" {
		fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>the message</Message></Error>", code)
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, r)
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "AKIDTEST"):
		refuse(w, http.StatusForbidden, "AccessDenied")
	case bucket != testBucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "" && r.Method == http.MethodGet:
		f.list(w, r)
	case r.Method == http.MethodPut:
		f.put(w, r, key, body)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		f.get(w, r, key)
	}
}

func (f *fake) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	o, exists := f.objects[key]
	match := r.Header.Get("If-Match")
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli)))
	switch {
	case sum != r.Header.Get("X-Amz-Checksum-Crc32c"):
		refuse(w, http.StatusBadRequest, "BadDigest")
	case r.Header.Get("If-None-Match") == "*" && exists, match != "" && exists && match != o.etag():
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case match != "" && !exists:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		o = fakeObject{body: body, sum: sum, time: time.Unix(1_700_000_000, 0)}
		f.objects[key] = o
		w.Header().Set("ETag", o.etag())
	}
}

func (f *fake) get(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := f.objects[key]
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", o.etag())
	w.Header().Set("Last-Modified", o.time.UTC().Format(http.TimeFormat))
	p, status, size := o.body, http.StatusOK, len(o.body)
	if span, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		first, last, ok := fakeRange(span, size)
		if !ok {
			refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		p, status = p[first:last+1], http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	} else if r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
		w.Header().Set("X-Amz-Checksum-Crc32c", o.sum)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(p)
	}
}

func fakeRange(span string, size int) (first, last int, ok bool) {
	from, to, _ := strings.Cut(span, "-")
	n, _ := strconv.Atoi(to)
	if from == "" {
		return max(size-n, 0), size - 1, size > 0 && n > 0
	}
	first, _ = strconv.Atoi(from)
	return first, min(n, size-1), first < size
}

type fakeEntry struct {
	Key, ETag, LastModified string
	Size                    int
}

type fakePrefix struct{ Prefix string }

// list returns pages of at most 7, so that every listing of a test has several. Like S3, it counts a common prefix
// again that contains StartAfter.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	most := 7
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = min(n, most)
	}
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []fakeEntry
		CommonPrefixes        []fakePrefix
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
	}
	keys := make([]string, 0, len(f.objects))
	for key := range f.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	rolled, last := "", ""
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || key <= after || rolled != "" && strings.HasPrefix(key, rolled) {
			continue
		}
		if len(answer.Contents)+len(answer.CommonPrefixes) == most {
			answer.IsTruncated, answer.NextContinuationToken = true, last
			break
		}
		if head, _, cut := strings.Cut(rest, "/"); cut && delimiter == "/" {
			rolled = prefix + head + "/"
			answer.CommonPrefixes = append(answer.CommonPrefixes, fakePrefix{rolled})
			last = rolled + "\xff"
			continue
		}
		o := f.objects[key]
		answer.Contents = append(answer.Contents, fakeEntry{key, o.etag(), o.time.UTC().Format(time.RFC3339), len(o.body)})
		last = key
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer)
}

// disorder lists a later page with earlier keys.
type disorder struct{ *fake }

func (disorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, more := "m", "<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>"
	if r.URL.Query().Get("continuation-token") != "" {
		key, more = "b", ""
	}
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprintf(w, "<ListBucketResult><Contents><Key>%s</Key></Contents>%s</ListBucketResult>", key, more)
}
