package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/searchindex"
)

// indexFile returns the path of a store's index: COPPICE_HISTORY, else a file in the user's cache,
// by the store's address. "" = in memory, as for COPPICE_HISTORY=off and for a store in memory.
func (c *cli) indexFile(store string) string {
	switch name := c.getenv("COPPICE_HISTORY"); {
	case name == "off" || name == "" && strings.HasPrefix(store, "mem:"):
		return ""
	case name != "":
		return name
	}
	cache := c.cacheDir()
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "coppice", "history-"+hashed(store)+".db")
}

// hashed returns a name for what is kept of a store: its address may hold what others must not read.
func hashed(store string) string {
	sum := sha256.Sum256([]byte(localPath(store)))
	return hex.EncodeToString(sum[:8])
}

// listFile returns the path of the file by which a store on a disk is listed; "" = none, as for COPPICE_HISTORY=off.
func (c *cli) listFile(store string) string {
	cache := c.cacheDir()
	remote := strings.Contains(localPath(store), "://") || strings.HasPrefix(store, "mem:")
	if cache == "" || remote || c.getenv("COPPICE_HISTORY") == "off" {
		return ""
	}
	return filepath.Join(cache, "coppice", "list-"+hashed(store))
}

// unindex takes sessions out of the index, if there is one: deleted ones, and those that have less now.
func (c *cli) unindex(ctx context.Context, st *countedStore, ids ...string) {
	if err := c.eraseIndex(ctx, st, ids...); err != nil {
		c.notef("the search index may still have what was removed; the next search erases it: %s",
			term.Line(err.Error()))
	}
}

// eraseIndex erases sessions in the index, if there is one.
func (c *cli) eraseIndex(ctx context.Context, st *countedStore, ids ...string) error {
	file := c.indexFile(st.url)
	if _, err := os.Stat(file); file == "" || err != nil {
		return nil
	}
	x, err := searchindex.Open(ctx, file)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, x.Erase(ctx, id))
	}
	return closeAfter(x, errors.Join(errs...))
}

// withIndex runs f on the index of a store. If its file cannot be used the index is built in
// memory.
func (c *cli) withIndex(ctx context.Context, st *countedStore, f func(x *searchindex.Index, file string) error) error {
	file := c.indexFile(st.url)
	x, err := searchindex.Open(ctx, file)
	if err != nil && file != "" && ctx.Err() == nil {
		c.notef("cannot use the index file, so everything is read: %s", term.Line(err.Error()))
		file = ""
		x, err = searchindex.Open(ctx, "")
	}
	if err != nil {
		return err
	}
	return closeAfter(x, f(x, file))
}

// withCurrentIndex runs f on the index of a store after an update; with a session id only that
// session is sure to be up to date. Sessions that cannot be read are reported after the error of f,
// which may have missed them.
func (c *cli) withCurrentIndex(
	ctx context.Context, st *countedStore, session string, f func(x *searchindex.Index) error,
) error {
	return c.withIndex(ctx, st, func(x *searchindex.Index, _ string) error {
		r, err := c.readIntoIndex(ctx, st, session, x.Update)
		if err != nil {
			return err
		}
		return errors.Join(f(x), unreadable(r))
	})
}

// readIntoIndex updates or rebuilds an index, with a progress bar.
func (c *cli) readIntoIndex(
	ctx context.Context, st *countedStore, session string,
	read func(context.Context, *coppice.Store, *searchindex.UpdateOptions) (searchindex.Report, error),
) (searchindex.Report, error) {
	var bar *term.Progress
	var last int64
	r, err := read(ctx, st.Store, &searchindex.UpdateOptions{
		Shallow: strings.HasPrefix(st.url, "s3:"), Session: session,
		Progress: func(done, total int64) {
			if last == 0 {
				bar = c.stderr.Progress("indexing", total, true, c.now)
			}
			bar.Add(done - last)
			last = done
		},
	})
	bar.Close()
	return r, err
}

// unreadable returns one error for all sessions that could not be read.
func unreadable(r searchindex.Report) error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("some sessions could not be read: %w", errors.Join(r.Problems...))
}

// parseQuery makes a query of arguments, which are read as one text.
func parseQuery(args []string) (searchindex.Query, error) {
	q, err := searchindex.Parse(strings.Join(args, " "))
	if err != nil {
		return q, usageError("%w", err)
	}
	return q, nil
}
