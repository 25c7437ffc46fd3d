package s3test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// errNoDocker reports that no container can be run.
var errNoDocker = errors.New("skipped unless REQUIRE_DOCKER=1, for no Docker answers")

// Label marks our containers and images, so that `make clean` finds the leftovers of a killed run.
const Label = "coppice.s3test"

const (
	imageRepo     = "coppice-s3server"
	containerPort = "7070"
	// containerLife ends a container whose test was killed.
	containerLife = "2h"
	healthWithin  = 10 * time.Second
)

// dockerfile needs no other image, so no registry is used.
const dockerfile = `FROM scratch
LABEL ` + Label + `=image
COPY s3server /s3server
ENTRYPOINT ["/s3server", "-addr", "0.0.0.0:` + containerPort + `", "-dir", "/data", "-life", "` + containerLife + `"]
`

// openContainer runs our server in a container of its own.
func openContainer(ctx context.Context) (*Target, error) {
	// Ryuk, the cleaner of the library, is an image from a registry. The library reads this variable once.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger()) // failures are in its errors
	if err := docker(ctx); err != nil {
		return nil, err
	}
	image, err := imageOf(ctx)
	if err != nil {
		return nil, err
	}
	ctr, err := testcontainers.Run(ctx, "",
		testcontainers.WithDockerfile(image),
		testcontainers.WithExposedPorts(containerPort+"/tcp"),
		testcontainers.WithEnv(map[string]string{
			"ROOT_ACCESS_KEY": AccessKey, "ROOT_SECRET_KEY": SecretKey,
			"GOMAXPROCS": "2",
		}),
		testcontainers.WithLabels(map[string]string{Label: "server"}),
		testcontainers.WithHostConfigModifier(func(c *mobycontainer.HostConfig) { c.AutoRemove = true }),
		testcontainers.WithWaitStrategy(wait.ForLog("ready ").WithStartupTimeout(startWithin)),
	)
	// The container exists as long as the package's tests, not one of them.
	atEnd(func() error { return testcontainers.TerminateContainer(ctr, testcontainers.StopTimeout(stopWithin)) })
	if err != nil {
		return nil, err
	}
	addr, err := reach(ctx, ctr)
	if err != nil {
		return nil, err
	}
	t := (&Server{Addr: addr}).Target("coppice-test")
	return t, t.MakeBucket(ctx)
}

// docker returns an error of one line if no container can be run.
func docker(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	defer func() { // the library panics with some settings
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errNoDocker, r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err == nil {
		err = provider.Health(ctx)
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("%w: %s", errNoDocker, line)
	}
	return nil
}

// imageOf describes the image. Its tag is the binary's hash, so it is built once and kept.
func imageOf(ctx context.Context) (testcontainers.FromDockerfile, error) {
	path, err := binary(ctx, "linux")
	if err != nil {
		return testcontainers.FromDockerfile{}, err
	}
	bin, err := os.ReadFile(path)
	if err != nil {
		return testcontainers.FromDockerfile{}, err
	}
	sum := sha256.Sum256(append([]byte(dockerfile), bin...))
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{{"Dockerfile", 0o644, []byte(dockerfile)}, {"s3server", 0o755, bin}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return testcontainers.FromDockerfile{}, err
		}
		if _, err := w.Write(f.data); err != nil {
			return testcontainers.FromDockerfile{}, err
		}
	}
	return testcontainers.FromDockerfile{
		ContextArchive: bytes.NewReader(archive.Bytes()),
		Repo:           imageRepo, Tag: hex.EncodeToString(sum[:6]), KeepImage: true,
	}, w.Close()
}

// reach finds the address of the container. If the root of the file system has a mark of containers, as in virtual
// machines made from images, the library assumes that it runs inside one and returns the gateway, where nothing
// listens: so its address is only the first guess.
func reach(ctx context.Context, ctr *testcontainers.DockerContainer) (string, error) {
	var guesses []string
	port, err := ctr.MappedPort(ctx, containerPort+"/tcp")
	if err != nil {
		return "", err
	}
	if host, err := ctr.Host(ctx); err == nil {
		guesses = append(guesses, net.JoinHostPort(host, port.Port()))
	}
	guesses = append(guesses, net.JoinHostPort("127.0.0.1", port.Port()))
	if ip, err := ctr.ContainerIP(ctx); err == nil && ip != "" {
		guesses = append(guesses, net.JoinHostPort(ip, containerPort))
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for begun := time.Now(); time.Since(begun) < startWithin; <-time.After(50 * time.Millisecond) {
		for _, addr := range guesses {
			if err = healthy(ctx, client, addr); err == nil {
				return addr, nil
			}
		}
	}
	return "", fmt.Errorf("the container answers at none of %v: %w", guesses, err)
}

func healthy(ctx context.Context, client *http.Client, addr string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return errors.Join(err, res.Body.Close())
}
