package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Pin is a pinned session.
type Pin struct {
	Store   string    `json:"store"` // the store's name in the file
	Session string    `json:"session"`
	Time    time.Time `json:"time"` // when it was pinned
}

// ErrTooManyPins reports that the limit of pins is reached.
var ErrTooManyPins = errors.New("too many sessions are pinned: remove some")

const (
	maxPins      = 1000
	maxPinsBytes = 4 << 20 // of the file; a pin has about 200 bytes, and a URL may be long
)

// Pins is the file with the pins of all stores; Now returns the time of a new pin.
//
// The file is replaced as a whole: a reader finds the old one or the new one, and of two concurrent changes one may be
// lost. It has at most 1,000 pins. A damaged file counts as empty; the next change replaces it.
type Pins struct {
	Path string
	Now  func() time.Time
}

// List returns the pins of a store, the newest first; none if the file cannot be read.
func (f *Pins) List(store string) []Pin {
	list := slices.DeleteFunc(f.read(), func(p Pin) bool { return p.Store != store })
	slices.Reverse(list)
	return list
}

// Add pins a session; if it is pinned already it becomes the newest.
func (f *Pins) Add(store, session string) error {
	if session == "" {
		return errors.New("pin a session: no id")
	}
	list := withoutPin(f.read(), store, session)
	if len(list) >= maxPins {
		return fmt.Errorf("pin session %s: %w", session, ErrTooManyPins)
	}
	return f.write(append(list, Pin{store, session, f.Now().UTC()}))
}

// Remove removes the pin of a session and reports whether there was one.
func (f *Pins) Remove(store, session string) (bool, error) {
	all := f.read()
	list := withoutPin(slices.Clone(all), store, session)
	if len(list) == len(all) {
		return false, nil
	}
	return true, f.write(list)
}

func withoutPin(list []Pin, store, session string) []Pin {
	return slices.DeleteFunc(list, func(p Pin) bool { return p.Store == store && p.Session == session })
}

// storedPins is the file, the oldest pin first.
type storedPins struct {
	Pins []Pin `json:"pins"`
}

// read returns the content of the file; the zero value if it is missing or damaged.
func (f *Pins) read() []Pin {
	if info, err := os.Stat(f.Path); err != nil || info.Size() > maxPinsBytes {
		return nil
	}
	raw, err := os.ReadFile(f.Path)
	if err != nil {
		return nil
	}
	var s storedPins
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil
	}
	list := slices.DeleteFunc(s.Pins, func(p Pin) bool { return p.Session == "" })
	return list[max(0, len(list)-maxPins):]
}

func (f *Pins) write(list []Pin) error {
	raw, err := json.Marshal(storedPins{list})
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	if len(raw) >= maxPinsBytes {
		return fmt.Errorf("pins of %d bytes: %w", len(raw), ErrTooManyPins)
	}
	return replaceFile(f.Path, append(raw, '\n'))
}
