package manager

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Crumb records the last session of a terminal.
type Crumb struct {
	Cwd     string    `json:"cwd"`             // its directory
	Session string    `json:"session"`         // its session
	Store   string    `json:"store,omitempty"` // its store
	Fresh   bool      `json:"fresh,omitempty"` // the session was created there, and may not be stored yet
	Time    time.Time `json:"time"`
}

const (
	maxCrumbs     = 256                 // maximum number
	crumbAge      = 90 * 24 * time.Hour // older ones are ignored
	maxCrumbBytes = 16 << 10            // of a crumb's file
	crumbSuffix   = ".json"
)

// Crumbs is the folder of the crumbs, one small file for each terminal; Now returns the time of a new crumb.
//
// A crumb is replaced as a whole: a reader finds the old one or the new one. The newest 256 are kept. A file that is
// damaged or older than 90 days is ignored.
type Crumbs struct {
	Path string
	Now  func() time.Time
}

// TerminalID returns the id of this terminal, from the first environment variable that has one; "" = none.
func TerminalID(getenv func(string) string) string {
	for _, name := range []string{
		"COPPICE_TERMINAL", "TMUX_PANE", "WEZTERM_PANE", "KITTY_WINDOW_ID", "ITERM_SESSION_ID", "TERM_SESSION_ID",
		"WT_SESSION", "ALACRITTY_WINDOW_ID", "KONSOLE_DBUS_SESSION", "STY", "WINDOWID", "SSH_TTY",
	} {
		if v := getenv(name); v != "" {
			return strings.ToLower(name) + "-" + v
		}
	}
	return ""
}

// file returns the path of a terminal's crumb. Names that differ only in special characters have different paths.
func (d *Crumbs) file(terminal string) (string, error) {
	if terminal == "" || len(terminal) > 100 {
		return "", fmt.Errorf("terminal %.40q: want 1 to 100 bytes", terminal)
	}
	var b strings.Builder
	for _, c := range []byte(terminal) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	return filepath.Join(d.Path, b.String()+crumbSuffix), nil
}

// Get returns a terminal's crumb; fs.ErrNotExist if there is no valid one.
func (d *Crumbs) Get(terminal string) (Crumb, error) {
	name, err := d.file(terminal)
	if err != nil {
		return Crumb{}, err
	}
	none := fmt.Errorf("terminal %s: %w", terminal, fs.ErrNotExist)
	if info, err := os.Stat(name); err != nil || info.Size() > maxCrumbBytes {
		return Crumb{}, none
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return Crumb{}, err
	}
	var c Crumb
	if err := json.Unmarshal(raw, &c); err != nil || c.Session == "" || d.Now().Sub(c.Time) > crumbAge {
		return Crumb{}, none
	}
	return c, nil
}

// Put stores a terminal's crumb.
func (d *Crumbs) Put(terminal string, c Crumb) error {
	name, err := d.file(terminal)
	if err != nil {
		return err
	}
	c.Time = d.Now().UTC()
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("terminal %s: %w", terminal, err)
	}
	if err := replaceFile(name, append(raw, '\n')); err != nil {
		return err
	}
	return d.thin()
}

// ForgetSession removes the crumbs of a session in every terminal, and returns how many there were. store reports
// whether a crumb's store is the session's. Damaged files that have the id, and those that a crash left, go too.
func (d *Crumbs) ForgetSession(session string, store func(name string) bool) (int, error) {
	if session == "" {
		return 0, errors.New("forget the crumbs of a session: no id")
	}
	list, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, f := range list {
		name := filepath.Join(d.Path, f.Name())
		if info, err := f.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxCrumbBytes {
			continue
		}
		raw, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // it was replaced meanwhile
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var c Crumb
		if json.Unmarshal(raw, &c) != nil {
			if !bytes.Contains(raw, []byte(session)) {
				continue
			}
		} else if c.Session != session || !store(c.Store) {
			continue
		}
		err = os.Remove(name)
		if err == nil {
			n++
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}

// thin removes the oldest crumbs over the limit, and temporary files that a crash left.
func (d *Crumbs) thin() error {
	list, err := os.ReadDir(d.Path)
	if err != nil || len(list) <= maxCrumbs {
		return err
	}
	type old struct {
		name string
		at   time.Time
	}
	var all []old
	for _, f := range list {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, old{f.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	var errs []error
	for _, f := range all[min(maxCrumbs, len(all)):] {
		if err := os.Remove(filepath.Join(d.Path, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
