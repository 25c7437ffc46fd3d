// Command path commits once on a local disk, in a session that is open and warm, and leaves the coverage counters of
// exactly that call in the folder that it is given. Build it with -cover -covermode=atomic.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"runtime/coverage"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	ctx := context.Background()
	store, err := coppice.Open(ctx, "file://"+filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	s, err := store.Create("", nil)
	if err != nil {
		return err
	}
	for range 8 {
		if err := turn(ctx, s, func() error { return nil }); err != nil {
			return err
		}
	}
	if err := turn(ctx, s, coverage.ClearCounters); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return s.Close()
}

func turn(ctx context.Context, s *coppice.Session, before func() error) error {
	if _, err := s.Append(ctx, entry.User("a question"), entry.Assistant("an answer")); err != nil {
		return err
	}
	if err := before(); err != nil {
		return err
	}
	_, err := s.Commit(ctx, coppice.Turn{State: map[string]int{"step": 1}})
	return err
}
