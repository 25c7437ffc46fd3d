package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/history"
)

// rememberWithin bounds how long a command that committed something takes longer for the prompts in it.
const rememberWithin = 500 * time.Millisecond

// HistoryFile says where the index of a store is: in the user's cache, by the store's URL, unless COPPICE_HISTORY
// names a file; "" = in memory, which "off" says too. A store in memory has its index there, and so has a program
// without an environment: it leaves nothing behind.
func (a *App) HistoryFile(store string) string {
	switch name := a.Getenv("COPPICE_HISTORY"); {
	case name == "off":
		return ""
	case name != "":
		return name
	}
	if strings.HasPrefix(store, "mem:") || a.Getenv("HOME") == "" && a.Getenv("LocalAppData") == "" {
		return ""
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	where := strings.TrimPrefix(store, "file://")
	if full, err := filepath.Abs(where); err == nil && !strings.Contains(where, "://") {
		where = full
	}
	sum := sha256.Sum256([]byte(where)) // a URL may hold what is not for others to read
	return filepath.Join(cache, "coppice", "history-"+hex.EncodeToString(sum[:8])+".db")
}

// remember reads, when a command is done, the prompts of what it committed into the index: nothing of it is waited
// for before, and the requests of a command are its own. What the index cannot take in this time, or at all, the
// next `coppice history` reads. An interrupted command does not stay for it.
func remember(ctx context.Context, st *coppice.Store, r *history.Recorder) {
	ctx, cancel := context.WithTimeout(ctx, rememberWithin)
	defer cancel()
	r.Start(ctx, st)
	_ = r.Close(ctx) // no command fails by it
}
