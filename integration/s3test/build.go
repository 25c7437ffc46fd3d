package s3test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// built holds the servers that this process has found or built, by operating system: the one for Linux is also copied
// into an image.
var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// binary finds integration/s3server for an operating system, or builds it, at most once.
func binary(ctx context.Context, goos string) (string, error) {
	if path := os.Getenv("S3TEST_BIN"); path != "" && goos == runtime.GOOS {
		return path, nil
	}
	built.Lock()
	defer built.Unlock()
	if path := built.paths[goos]; path != "" {
		return path, nil
	}
	path, err := build(ctx, goos)
	if err != nil {
		return "", err
	}
	built.paths[goos] = path
	return path, nil
}

// build makes a static binary, which runs in an empty image as well as here.
func build(ctx context.Context, goos string) (string, error) {
	src, err := sources()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), goos, runtime.GOARCH)
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		p, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return "", err
		}
		sum.Write(p)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(src, "bin")
	}
	dir := filepath.Join(cache, "coppice-s3server")
	path := filepath.Join(dir, hex.EncodeToString(sum.Sum(nil)[:12]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", temp, ".")
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf(
			"build integration/s3server (without network, point S3TEST_BIN at a binary): %w\n%s", err, out)
	}
	return path, os.Rename(temp, path)
}

// sources finds integration/s3server from a package below integration.
func sources() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		src := filepath.Join(dir, "s3server")
		if _, gone := os.Stat(filepath.Join(src, "go.mod")); gone == nil {
			return src, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			err = errors.New("integration/s3server is not above the working directory")
		}
		dir = up
	}
	return "", err
}
