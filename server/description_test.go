package server_test

import (
	"flag"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// docs/openapi.json is what the server returns as its description.
// `go test ./server -run TestDescription -update` writes it again.
func TestDescription(t *testing.T) {
	got, err := newSite(t, "mem:").srv.Description()
	if err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, *update, "../docs/openapi.json", got)
}
