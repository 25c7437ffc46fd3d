package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/coppice-go/coppice/server"
)

// The token file is read again when it has changed, and only then. What is wrong with it changes nothing.
func TestServeFollowsTokens(t *testing.T) {
	t.Parallel()
	file := tokenFile(t, "one - read")
	s := &service{o: serveOptions{tokenFile: file}, log: slog.New(slog.DiscardHandler)}
	err := s.readTokens(func(f io.Reader) (err error) {
		s.tokens, err = server.ParseTokens(f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		s.followTokens(ctx, nil, ticks)
	}()
	for _, step := range []struct {
		file  string // that replaces the token file; "" = none
		token string
	}{
		{"", "one"},
		{tokenFile(t, "two - read"), "two"},
		{os.DevNull, "two"},
		{tokenFile(t, "three - read"), "three"},
	} {
		switch step.file {
		case "":
		case os.DevNull:
			err = os.WriteFile(file, []byte("nonsense"), 0o600)
		default:
			err = os.Rename(step.file, file)
		}
		if err != nil {
			t.Fatal(err)
		}
		ticks <- time.Time{}
		ticks <- time.Time{} // when it is taken, the first one has been answered
		for _, token := range []string{"one", "two", "three"} {
			r := httptest.NewRequest(http.MethodGet, "/v1/sessions", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+token)
			if _, err := s.tokens.Authorize(r); (err == nil) != (token == step.token) {
				t.Errorf("%s is valid: token %s: %v", step.token, token, err)
			}
		}
	}
	cancel()
	<-done
}
