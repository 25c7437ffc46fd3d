package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/integration/s3test"
)

const (
	testImage  = "coppice-image-test"
	imageReady = 30 * time.Second // from the start of the container to its first answer
)

// docker runs the client of Docker, or another program, and returns its output.
func docker(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, &out, &errs)
	}
	return strings.TrimSpace(out.String())
}

// The image of `make image` serves the store in its volume as a user other than root, exits with 0 when it is stopped,
// and has all commits when it is started again.
func TestImage(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "docker", "version").Run(); err != nil {
		if os.Getenv("REQUIRE_DOCKER") == "1" {
			t.Fatalf("no Docker answers: %v", err)
		}
		t.Skipf("no Docker answers: %v", err)
	}
	docker(t, "make", "-C", "..", "image", "IMAGE="+testImage)
	tokens := filepath.Join(t.TempDir(), "tokens")
	line := fmt.Sprintf("%x - read,write\n", sha256.Sum256([]byte("secret")))
	if err := os.WriteFile(tokens, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	id := docker(t, "docker", "create", "--publish", "127.0.0.1::7070", "--label", s3test.Label+"=image", testImage)
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "--force", "--volumes", id}, {"rmi", "--force", testImage}} {
			if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
				t.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
	docker(t, "docker", "cp", tokens, id+":/tokens")
	auth := "Authorization: Bearer secret"
	for life := range 2 {
		docker(t, "docker", "start", id)
		url := "http://" + docker(t, "docker", "port", id, "7070/tcp") + "/v1/sessions/s"
		answers(t, id, strings.TrimSuffix(url, "/sessions/s")+"/health")
		if life == 0 {
			if status, body := request(t, http.MethodGet, url, ""); status != http.StatusUnauthorized {
				t.Errorf("without a token: %d %s", status, body)
			}
			if status, body := request(t, http.MethodPut, url, `{}`, "If-None-Match: *", auth); status != http.StatusCreated {
				t.Fatalf("%d %s", status, body)
			}
			turn := `{"entries":[{"role":"user","content":"in a container"}]}`
			if status, body := request(t, http.MethodPost, url+"/commits", turn, "If-Match: *", auth); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		}
		for _, path := range []string{url + "/resume", strings.TrimSuffix(url, "sessions/s") + "search?q=container"} {
			if status, body := request(t, http.MethodGet, path, "", auth); !bytes.Contains(body, []byte("in a container")) {
				t.Errorf("life %d: %d %s", life, status, body)
			}
		}
		docker(t, "docker", "stop", "--time", "20", id) // SIGTERM
		if code := docker(t, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); code != "0" {
			t.Errorf("exit code %s: %s", code, docker(t, "docker", "logs", id))
		}
	}
}

// answers waits until the server in a container answers.
func answers(t *testing.T, id, url string) {
	t.Helper()
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var last error
	for begun := time.Now(); time.Since(begun) < imageReady; <-time.After(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return
		}
		last = err
	}
	t.Fatalf("the container does not answer: %v\n%s", last, docker(t, "docker", "logs", id))
}
