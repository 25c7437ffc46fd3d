package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/coppice-go/coppice/backend"
)

const oldKey, newKey = "AKIDTESTOLD", "AKIDTESTNEW"

// guarded is a fake that refuses the requests of one access key.
type guarded struct {
	*fake
	status int
	code   string
	hold   func(r *http.Request) // called before a refusal. May be nil

	mu      sync.Mutex
	refused string // access key
	asked   []string
}

func newGuarded(status int, code string) *guarded {
	return &guarded{fake: newFake(), status: status, code: code, refused: oldKey}
}

var signedBy = regexp.MustCompile(`Credential=([^/]+)/`)

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := "nobody"
	if m := signedBy.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		key = m[1]
	}
	g.mu.Lock()
	g.asked = append(g.asked, r.Method+" "+key)
	refused := key == g.refused
	g.mu.Unlock()
	if !refused {
		g.fake.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if g.hold != nil {
		g.hold(r)
	}
	refuse(w, g.status, g.code)
}

// requests returns the requests since its last call.
func (g *guarded) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// bareHost clears what the SDK's default chain reads, and returns the path of the shared file.
func bareHost(t *testing.T) string {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN",
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "us-east-1")
	return filepath.Join(dir, "credentials")
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func profile(name, key string) string {
	return fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = secret\n", name, key)
}

// dialChain opens the bucket with the SDK's default chain.
func dialChain(t *testing.T, url string, now *time.Time) *Backend {
	t.Helper()
	return dial(t, url, func(o *Options) {
		o.Config = nil
		if now != nil {
			o.Now = func() time.Time { return *now }
		}
	})
}

// TestRotatedCredentials: after a rotation every operation reads the shared file again and is sent once more, with its
// normal result.
func TestRotatedCredentials(t *testing.T) {
	file := bareHost(t)
	const all = "put create replace get stat delete list"
	for _, c := range []struct {
		status       int
		codes, calls string
	}{
		{http.StatusBadRequest, "ExpiredToken", all},
		{http.StatusForbidden, "InvalidAccessKeyId", all},
		{http.StatusUnauthorized, "Unauthorized", "put stat"},
		{http.StatusBadRequest, "ExpiredTokenException RequestExpired TokenRefreshRequired InvalidToken", "put"},
		{http.StatusForbidden, "InvalidClientTokenId UnrecognizedClientException InvalidSecurity", "put"},
		{http.StatusForbidden, "SignatureDoesNotMatch", "put"},
	} {
		for code := range strings.FieldsSeq(c.codes) {
			for op := range strings.FieldsSeq(c.calls) {
				plain := newGuarded(0, "")
				want := calls[op](t.Context(), dial(t, serve(t, plain), func(o *Options) {
					o.Config.Credentials = credentials.NewStaticCredentialsProvider(newKey, "secret", "")
				}))
				asked := plain.requests()

				g := newGuarded(c.status, code)
				writeFile(t, file, profile("default", oldKey))
				b := dialChain(t, serve(t, g), nil)
				writeFile(t, file, profile("default", newKey))
				if err := calls[op](t.Context(), b); fmt.Sprint(err) != fmt.Sprint(want) {
					t.Errorf("%s, %s: %v, want %v", op, code, err, want)
				}
				method, _, _ := strings.Cut(asked[0], " ")
				first := []string{method + " " + oldKey}
				if op == "stat" && c.status != http.StatusUnauthorized {
					first = append(first, "GET "+oldKey) // the refusal of a HEAD has no code
				}
				if got := g.requests(); !slices.Equal(got, append(first, asked...)) {
					t.Errorf("%s, %s: asked %q, want %q and then %q", op, code, got, first, asked)
				}
				err := calls["put"](t.Context(), b)
				if got := g.requests(); err != nil || !slices.Equal(got, []string{"PUT " + newKey}) {
					t.Errorf("%s, %s: the next request: %v, asked %q", op, code, err, got)
				}
			}
		}
	}
}

// TestRefusedCredentials: if the source has no other credentials the call ends, and the error contains the cause and a
// hint. The source is not read again within a second.
func TestRefusedCredentials(t *testing.T) {
	file := bareHost(t)
	var loaded atomic.Int32
	for _, c := range []struct {
		name string
		open func(o *Options)
		text string
	}{
		{"file", func(o *Options) {
			o.Config = nil
			writeFile(t, file, profile("default", oldKey))
		}, "write new ones to " + file},
		{"fixed", func(o *Options) {
			o.Config.Credentials = credentials.NewStaticCredentialsProvider(oldKey, "secret", "")
		}, "open the store again"},
		{"provider", func(o *Options) {
			o.Config.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
				func(context.Context) (aws.Credentials, error) {
					loaded.Add(1)
					return aws.Credentials{AccessKeyID: oldKey, SecretAccessKey: "secret", Source: "the vault"}, nil
				}))
		}, "has no others (the vault)"},
		{"environment", func(o *Options) {
			o.Config = nil
			t.Setenv("AWS_ACCESS_KEY_ID", oldKey)
			t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		}, "restart with new ones"},
	} {
		g := newGuarded(http.StatusBadRequest, "ExpiredToken")
		now := time.Unix(0, 0)
		b := dial(t, serve(t, g), func(o *Options) {
			o.Now = func() time.Time { return now }
			c.open(o)
		})
		for op, call := range calls {
			err := call(t.Context(), b)
			if backend.OutcomeOf(err) != backend.NotApplied || errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s, %s: %v (%s)", c.name, op, err, backend.OutcomeOf(err))
			}
			for _, text := range []string{"credentials have expired", "ExpiredToken", c.text} {
				if !strings.Contains(fmt.Sprint(err), text) {
					t.Errorf("%s, %s: %v, want %q in it", c.name, op, err, text)
				}
			}
			want := 1
			if op == "stat" {
				want = 2
			}
			if got := g.requests(); len(got) != want {
				t.Errorf("%s, %s: asked %q, want %d requests", c.name, op, got, want)
			}
		}
		now = now.Add(reloadGap)
		g.mu.Lock()
		g.refused = ""
		g.mu.Unlock()
		if err := calls["put"](t.Context(), b); err != nil {
			t.Errorf("%s: accepted again: %v", c.name, err)
		}
	}
	if n := loaded.Load(); n != 2 {
		t.Errorf("the provider was asked %d times within a second, want 2", n)
	}
}

// TestLateRotation: the file changes only after the credentials were refused. The process needs no restart.
func TestLateRotation(t *testing.T) {
	file := bareHost(t)
	writeFile(t, file, profile("default", oldKey))
	g := newGuarded(http.StatusForbidden, "InvalidAccessKeyId")
	now := time.Unix(0, 0)
	b := dialChain(t, serve(t, g), &now)
	if err := calls["create"](t.Context(), b); err == nil {
		t.Fatal("not refused")
	}
	writeFile(t, file, profile("default", newKey))
	now = now.Add(reloadGap)
	if err := calls["create"](t.Context(), b); err != nil {
		t.Errorf("a second later: %v", err)
	}
	writeFile(t, file, "[default")
	g.mu.Lock()
	g.refused = newKey
	g.mu.Unlock()
	now = now.Add(reloadGap)
	err := calls["put"](t.Context(), b)
	if backend.OutcomeOf(err) != backend.NotApplied || !strings.Contains(fmt.Sprint(err), "reloading the cred") {
		t.Errorf("with a damaged file: %v (%s)", err, backend.OutcomeOf(err))
	}
}

// TestRefusedTwice: a call is sent with other credentials once, however often these change.
func TestRefusedTwice(t *testing.T) {
	var loaded, asked atomic.Int32
	now := time.Unix(0, 0)
	b := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		code := "ExpiredToken"
		if asked.Add(1) > 9 {
			code = "AccessDenied" // ends a call that would continue
		}
		refuse(w, http.StatusBadRequest, code)
	})), func(o *Options) {
		o.Now = func() time.Time { now = now.Add(reloadGap); return now }
		o.Config.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				key := fmt.Sprintf("AKIDTEST%d", loaded.Add(1))
				return aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret", Source: "the vault"}, nil
			}))
	})
	for i := range int32(2) {
		asked.Store(0)
		if err := calls["get"](t.Context(), b); !strings.Contains(fmt.Sprint(err), "no others (the vault)") {
			t.Errorf("call %d: %v", i, err)
		}
		if loaded.Load() != i+2 || asked.Load() != 2 {
			t.Errorf("call %d: loaded %d, asked %d, want %d and 2", i, loaded.Load(), asked.Load(), i+2)
		}
	}
}

// TestPermissionDenied: other credentials of the same user are refused as well, so none are loaded.
func TestPermissionDenied(t *testing.T) {
	var loaded atomic.Int32
	g := newGuarded(http.StatusForbidden, "AccessDenied")
	b := dial(t, serve(t, g), func(o *Options) {
		o.Config.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				loaded.Add(1)
				return aws.Credentials{AccessKeyID: oldKey, SecretAccessKey: "secret"}, nil
			}))
	})
	for op, call := range calls {
		err := call(t.Context(), b)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%s: %v", op, err)
		}
	}
	if n := loaded.Load(); n != 1 {
		t.Errorf("the credentials were loaded %d times, want once", n)
	}
}

// TestManyRefused: of many calls that are refused at once, one loads the credentials again, and all use the result.
func TestManyRefused(t *testing.T) {
	const callers = 16
	for _, rotated := range []bool{true, false} {
		var loaded, refused atomic.Int32
		all := make(chan struct{})
		g := newGuarded(http.StatusBadRequest, "ExpiredToken")
		g.hold = func(r *http.Request) {
			if refused.Add(1) == callers {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
		now := time.Unix(0, 0)
		b := dial(t, serve(t, g), func(o *Options) {
			o.Now = func() time.Time { return now }
			o.Config.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
				func(context.Context) (aws.Credentials, error) {
					key := oldKey
					if loaded.Add(1) > 1 && rotated {
						key = newKey
					}
					return aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret"}, nil
				}))
		})
		errs := make(chan error, callers)
		for range callers {
			go func() { errs <- calls["put"](t.Context(), b) }()
		}
		for range callers {
			if err := <-errs; (err == nil) != rotated {
				t.Errorf("rotated %v: %v", rotated, err)
			}
		}
		want := callers
		if rotated {
			want *= 2
		}
		if n := len(g.requests()); n != want || loaded.Load() != 2 {
			t.Errorf("rotated %v: %d requests, loaded %d times; want %d and 2", rotated, n, loaded.Load(), want)
		}
	}
}

// TestReloadIsCancelled: a caller that is cancelled while it loads the credentials affects no other caller.
func TestReloadIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var loaded atomic.Int32
	g := newGuarded(http.StatusBadRequest, "ExpiredToken")
	now := time.Unix(0, 0)
	b := dial(t, serve(t, g), func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Config.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			switch loaded.Add(1) {
			case 1, 3:
				return aws.Credentials{AccessKeyID: oldKey, SecretAccessKey: "secret"}, nil
			case 2:
				cancel()
				<-ctx.Done()
				return aws.Credentials{}, ctx.Err()
			}
			return aws.Credentials{AccessKeyID: newKey, SecretAccessKey: "secret"}, nil
		})
	})
	err := calls["create"](ctx, b)
	if !errors.Is(err, context.Canceled) || backend.OutcomeOf(err) != backend.NotApplied {
		t.Errorf("cancelled: %v (%s)", err, backend.OutcomeOf(err))
	}
	if err := calls["create"](t.Context(), b); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}

// TestHeadOfTwoRotations: the credentials are replaced between a HEAD that was refused and the GET that finds the
// reason.
func TestHeadOfTwoRotations(t *testing.T) {
	g := newGuarded(http.StatusForbidden, "InvalidAccessKeyId")
	g.objects["key"] = sumOf(fakeObject{body: []byte("bytes")})
	keys := oldKey
	g.hold = func(*http.Request) { keys = newKey }
	b := dial(t, serve(t, g), func(o *Options) {
		o.Config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: keys, SecretAccessKey: "secret"}, nil
		})
	})
	if info, err := b.Stat(t.Context(), "key"); err != nil || info.Size != 5 {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if got := g.requests(); !slices.Equal(got, []string{"HEAD " + oldKey, "GET " + newKey, "HEAD " + newKey}) {
		t.Errorf("asked %q", got)
	}
}

// tokenService is a fake of AWS STS: it issues the access key that show returns, and refuses "".
func tokenService(t *testing.T, show func(r *http.Request) string) {
	t.Setenv("AWS_ENDPOINT_URL_STS", serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		key, action := show(r), r.Form.Get("Action")
		if key == "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<ErrorResponse><Error><Code>InvalidClientTokenId</Code></Error></ErrorResponse>")
			return
		}
		fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId>`+
			`<SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>`+
			`<Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, key)
	})))
}

// TestWebIdentity: a session that the store no longer accepts is replaced by one for the token that the file has now.
func TestWebIdentity(t *testing.T) {
	token := filepath.Join(filepath.Dir(bareHost(t)), "token")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/agent")
	tokenService(t, func(r *http.Request) string { return r.Form.Get("WebIdentityToken") })
	writeFile(t, token, oldKey)
	g := newGuarded(http.StatusBadRequest, "ExpiredToken")
	g.refused = ""
	b := dialChain(t, serve(t, g), nil)
	if err := calls["put"](t.Context(), b); err != nil {
		t.Fatal(err)
	}
	writeFile(t, token, newKey)
	g.refused = oldKey
	if err := calls["put"](t.Context(), b); err != nil {
		t.Errorf("after the session was revoked: %v", err)
	}
	if got := g.requests(); !slices.Equal(got, []string{"PUT " + oldKey, "PUT " + oldKey, "PUT " + newKey}) {
		t.Errorf("asked %q", got)
	}
}

// TestRoleOfARotatedProfile: the keys that a role is assumed with are read again when the token service refuses them.
func TestRoleOfARotatedProfile(t *testing.T) {
	file := bareHost(t)
	role := "[default]\nrole_arn = arn:aws:iam::123456789012:role/agent\nsource_profile = base\n"
	tokenService(t, func(r *http.Request) string {
		if strings.Contains(r.Header.Get("Authorization"), oldKey) {
			return ""
		}
		return newKey
	})
	g := newGuarded(http.StatusBadRequest, "ExpiredToken")
	writeFile(t, file, role+profile("base", oldKey))
	now := time.Unix(0, 0)
	b := dialChain(t, serve(t, g), &now)
	err := calls["put"](t.Context(), b)
	if backend.OutcomeOf(err) != backend.NotApplied || !strings.Contains(fmt.Sprint(err), "InvalidClientTokenId") {
		t.Errorf("before the rotation: %v (%s)", err, backend.OutcomeOf(err))
	}
	now = now.Add(reloadGap)
	writeFile(t, file, role+profile("base", newKey))
	if err := calls["put"](t.Context(), b); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if got := g.requests(); !slices.Equal(got, []string{"PUT " + newKey}) {
		t.Errorf("asked %q", got)
	}
}
