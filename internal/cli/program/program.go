// Package program is what every command of coppice shares: the store that it works on, the way from a
// shortened id to a session, one JSON document on the standard output, and what its exit codes mean.
//
// Guarantees: with JSON asked for, a command writes exactly one JSON document to its standard output,
// whether it succeeds or fails; every error has a code that does not change, a sentence for people, and,
// where something can be done, a hint; what a command asked of the backend is counted.
package program

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-go/coppice/internal/cli/term"
)

// App is one run of the command line.
type App struct {
	In       io.Reader
	Out, Err *term.Screen
	Getenv   func(string) string
	Now      func() time.Time
	URL      string // --store
	JSON     bool   // --json
	Alone    bool   // --single-writer

	spoke bool // a JSON document is on Out, or under way
}

// StoreURL is where the store is: the flag, else COPPICE_STORE, else a folder of the user's.
func (a *App) StoreURL() (string, error) {
	if a.URL != "" {
		return a.URL, nil
	}
	if url := a.Getenv("COPPICE_STORE"); url != "" {
		return url, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", Usage("no store: give --store or set COPPICE_STORE (%v)", err)
	}
	return filepath.Join(home, ".local", "share", "coppice"), nil
}

// Home is the user's home folder; "" = not known.
func (a *App) Home() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// Text writes a line for people to the standard output.
func (a *App) Text(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

// Note writes a remark for people to the standard error.
func (a *App) Note(format string, args ...any) {
	if _, err := fmt.Fprintf(a.Err, "coppice: "+format+"\n", args...); err != nil {
		return // nobody listens
	}
}

// Emit writes v as the one JSON document. Raw messages within keep their bytes.
func (a *App) Emit(v any) error {
	a.spoke = true
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
