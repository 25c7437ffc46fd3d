// Package pins remembers which sessions a person wants at hand, in one small file.
//
// The file is replaced as a whole, so a reader finds the old one or the new one; of two changes at the same moment
// one may be lost. At most 1,000 sessions are pinned, in all stores together. A file that is damaged counts as
// empty, and nobody fails for it: the next change replaces it.
package pins

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/coppice-go/coppice/manager/internal/whole"
)

// Pin is a session that somebody pinned.
type Pin struct {
	Store   string    `json:"store"` // what the store is called there
	Session string    `json:"session"`
	Time    time.Time `json:"time"` // when it was pinned
}

// ErrFull says that no more can be pinned before others are removed.
var ErrFull = errors.New("too many sessions are pinned: remove some")

const (
	most     = 1000
	maxBytes = 4 << 20 // of the file; a pin has some 200 bytes, and a URL may be long
)

// File is where the pins are. Now stamps them.
type File struct {
	Path string
	Now  func() time.Time
}

// List gives the pins of a store, the newest first. What cannot be read is not there.
func (f *File) List(store string) []Pin {
	list := slices.DeleteFunc(f.read(), func(p Pin) bool { return p.Store != store })
	slices.Reverse(list)
	return list
}

// Add pins a session; one that is pinned already becomes the newest.
func (f *File) Add(store, session string) error {
	if session == "" {
		return errors.New("pin a session: no id")
	}
	list := without(f.read(), store, session)
	if len(list) >= most {
		return fmt.Errorf("pin session %s: %w", session, ErrFull)
	}
	return f.write(append(list, Pin{store, session, f.Now().UTC()}))
}

// Remove takes the pin off a session. It tells whether there was one.
func (f *File) Remove(store, session string) (bool, error) {
	all := f.read()
	list := without(slices.Clone(all), store, session)
	if len(list) == len(all) {
		return false, nil
	}
	return true, f.write(list)
}

func without(list []Pin, store, session string) []Pin {
	return slices.DeleteFunc(list, func(p Pin) bool { return p.Store == store && p.Session == session })
}

// stored is the file, the oldest pin first.
type stored struct {
	Pins []Pin `json:"pins"`
}

// read gives what the file holds; nothing, where there is none that counts.
func (f *File) read() []Pin {
	if info, err := os.Stat(f.Path); err != nil || info.Size() > maxBytes {
		return nil
	}
	raw, err := os.ReadFile(f.Path)
	if err != nil {
		return nil
	}
	var s stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil
	}
	list := slices.DeleteFunc(s.Pins, func(p Pin) bool { return p.Session == "" })
	return list[max(0, len(list)-most):]
}

func (f *File) write(list []Pin) error {
	raw, err := json.Marshal(stored{list})
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	if len(raw) >= maxBytes {
		return fmt.Errorf("pins of %d bytes: %w", len(raw), ErrFull)
	}
	return whole.Write(f.Path, append(raw, '\n'))
}
