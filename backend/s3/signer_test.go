package s3

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// signedWith reports whether a request that a server received was signed with a secret.
func signedWith(t *testing.T, r *http.Request, secret string) bool {
	t.Helper()
	auth := r.Header.Get("Authorization")
	_, list, _ := strings.Cut(auth, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Error(err)
	}
	again := r.Clone(t.Context())
	again.Header = http.Header{}
	for name := range strings.SplitSeq(list, ";") {
		if name != "host" {
			again.Header.Set(name, r.Header.Get(name))
		}
	}
	again.URL.Host, again.Host = r.Host, ""
	keys := aws.Credentials{AccessKeyID: oldKey, SecretAccessKey: secret}
	sdk := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	region := strings.Split(auth, "/")[2]
	sum := r.Header.Get("X-Amz-Content-Sha256")
	if err := sdk.SignHTTP(t.Context(), keys, again, sum, "s3", region, at); err != nil {
		t.Error(err)
	}
	return again.Header.Get("Authorization") == auth
}

// The secret of an access key that keeps its id is rotated: the next request is signed with the new one.
func TestRotatedSecret(t *testing.T) {
	file, fake, accepts := bareHost(t), newFake(), "secret"
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signedWith(t, r, accepts) {
			fake.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusForbidden)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
		}
	}))
	writeFile(t, file, profile("default", oldKey))
	now := time.Unix(0, 0)
	b := dialChain(t, url, &now)
	for i, secret := range []string{"secret", "rotated", "rotated again"} {
		accepts = secret
		writeFile(t, file, strings.Replace(profile("default", oldKey), "= secret\n", "= "+secret+"\n", 1))
		now = now.Add(reloadGap)
		for _, op := range []string{"put", "get", "stat", "list", "delete"} {
			if err := calls[op](t.Context(), b); err != nil {
				t.Errorf("rotation %d, %s: %v", i, op, err)
			}
		}
	}
}
