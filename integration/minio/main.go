// Command minio runs a command with a MinIO server to test against: it builds that once, from source, and keeps it in
// the user's cache folder; starts it on a free port of 127.0.0.1 with an empty directory; makes a bucket; and runs the
// command with S3_TEST_ENDPOINT and the other variables of package s3test set. The server ends with the command, whose
// exit code is returned.
//
//	go run ./minio go test
//
// MinIO is a second opinion, never the default: its licence is the AGPL and its repository is declared unmaintained, so
// the version here is the last one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	module      = "github.com/minio/minio"
	version     = "v0.0.0-20260212201848-7aac2a2c5b7c"
	user        = "minio-access"
	password    = "minio-secret-minio-secret"
	region      = "us-east-1"
	bucket      = "coppice-test"
	startWithin = 60 * time.Second
	stopWithin  = 10 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "minio:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("want a command to run")
	}
	bin, err := build(ctx)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "coppice-minio-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	addr, err := freeAddr(ctx)
	if err != nil {
		return 1, err
	}
	server, err := serve(bin, addr, dir)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, end(server)) }()
	if err := ready(ctx, addr); err != nil {
		return 1, err
	}
	if err := makeBucket(ctx, addr); err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "S3_TEST_ENDPOINT=http://"+addr, "S3_TEST_BUCKET="+bucket,
		"S3_TEST_PATH_STYLE=true", "AWS_REGION="+region, "AWS_ACCESS_KEY_ID="+user, "AWS_SECRET_ACCESS_KEY="+password)
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// build returns the path of the server.
func build(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "coppice-minio", version)
	path := filepath.Join(dir, "minio")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintln(os.Stderr, "minio: building", module+"@"+version, "into", dir)
	// Only a whole binary gets its name: an interrupted build is not taken for one.
	temp := fmt.Sprintf("%s.%d", dir, os.Getpid())
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", module+"@"+version)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+temp)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("MinIO cannot be built: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(temp, "minio"), path)
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// serve starts the server, without the user's environment and home.
func serve(bin, addr, dir string) (*exec.Cmd, error) {
	cmd := exec.Command(bin, "server", "--quiet", "--address", addr, filepath.Join(dir, "data"))
	cmd.Env = []string{
		"HOME=" + dir, "MINIO_ROOT_USER=" + user, "MINIO_ROOT_PASSWORD=" + password, "MINIO_BROWSER=off",
		"MINIO_UPDATE=off",
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

func end(server *exec.Cmd) error {
	if err := server.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.AfterFunc(stopWithin, func() { _ = server.Process.Kill() })
	defer timer.Stop()
	if err := server.Wait(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return err
		}
	}
	return nil
}

func ready(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/minio/health/live", http.NoBody)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func makeBucket(ctx context.Context, addr string) error {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + addr), UsePathStyle: true, Region: region,
		Credentials: credentials.NewStaticCredentialsProvider(user, password, ""),
	})
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	return err
}
