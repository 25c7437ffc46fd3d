// Command s3server is a real S3 server for tests: versitygw with its posix backend, one directory, one account. It
// listens on one address, prints "ready ADDRESS" once it does, and ends on SIGTERM, on SIGINT, with -stdin when its
// standard input is closed, and with -life after that time: so it does not outlive the test that started it.
//
// The account is ROOT_ACCESS_KEY and ROOT_SECRET_KEY of the environment. Objects are replaced atomically but not synced
// to the disk: it survives being killed, not a power loss.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

func main() {
	if err := command(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(1)
	}
}

func command() error {
	addr := flag.String("addr", "127.0.0.1:7070", "address to listen on")
	dir := flag.String("dir", "", "directory that holds the buckets; made if missing")
	stdin := flag.Bool("stdin", false, "end when the standard input is closed")
	life := flag.Duration("life", 0, "end after this time; 0 = never")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if *life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *life)
		defer cancel()
	}
	if *stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	return run(ctx, *addr, *dir)
}

func run(ctx context.Context, addr, dir string) error {
	access, secret := os.Getenv("ROOT_ACCESS_KEY"), os.Getenv("ROOT_SECRET_KEY")
	if dir == "" || access == "" || secret == "" {
		return errors.New("want -dir, and ROOT_ACCESS_KEY and ROOT_SECRET_KEY in the environment")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	// Without extended attributes the server would keep metadata in separate files, and a reader could see that of one
	// write with the data of another.
	if err := (meta.XattrMeta{}).Test(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	store, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{
		NewDirPerm: 0o750, Concurrency: 5000, CopyObjectThreshold: 5 << 30,
	})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, store, &embedgw.Config{
		RootUserAccess: access, RootUserSecret: secret, Region: "us-east-1", Ports: []string{addr},
		MaxConnections: 4096, MaxRequests: 2048, MultipartMaxParts: 10000,
		Quiet: true, KeepAlive: true, HealthPath: "/health",
		S3Options: []s3api.Option{s3api.WithOnListen(func() { fmt.Fprintln(os.Stdout, "ready", addr) })},
	})
}
