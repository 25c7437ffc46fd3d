package server_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// docs/openapi.json is what the server returns as its description.
// `go test ./server -run TestDescription -update` writes it anew.
func TestDescription(t *testing.T) {
	const name = "../docs/openapi.json"
	got, err := newSite(t, "mem:").srv.Description()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/openapi.json is not what the server describes: write it anew, and look at the difference")
	}
}
