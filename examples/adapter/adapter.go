// Package adapter implements an agent framework's checkpoint store with coppice: one that stores opaque bytes by id,
// like eino's compose.CheckPointStore. The interface is copied here, so no framework is imported.
package adapter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"unicode/utf8"

	"github.com/coppice-go/coppice"
)

// CheckPointStore is the framework's interface.
type CheckPointStore interface {
	Get(ctx context.Context, checkPointID string) ([]byte, bool, error)
	Set(ctx context.Context, checkPointID string, checkPoint []byte) error
}

// CheckPointDeleter is its optional part.
type CheckPointDeleter interface {
	Delete(ctx context.Context, checkPointID string) error
}

var (
	_ CheckPointStore   = Eino{}
	_ CheckPointDeleter = Eino{}
)

// Eino stores each checkpoint as the state of one session; every version of it can be restored. A checkpoint that is a
// compact JSON object or array is the state itself: the viewer shows it, and a commit stores only its changes. Any
// other is stored as the base64 text of its bytes, of which little stays the same from one version to the next.
type Eino struct{ Store *coppice.Store }

// stateOf returns the state for a checkpoint.
func stateOf(p []byte) any {
	if p == nil {
		p = []byte{}
	}
	var compact bytes.Buffer // a state is stored without white space between its tokens
	structured := len(p) > 0 && (p[0] == '{' || p[0] == '[') && utf8.Valid(p)
	if structured && json.Compact(&compact, p) == nil && bytes.Equal(compact.Bytes(), p) {
		return json.RawMessage(p)
	}
	return p
}

// checkPointOf returns the checkpoint of a state.
func checkPointOf(state json.RawMessage) (p []byte, err error) {
	if len(state) > 0 && (state[0] == '{' || state[0] == '[') {
		return state, nil
	}
	return p, json.Unmarshal(state, &p)
}

// key makes a session id from any id.
func key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Get returns a checkpoint; false if there is none.
func (e Eino) Get(ctx context.Context, id string) (p []byte, found bool, err error) {
	s, err := e.Store.Open(ctx, key(id), &coppice.SessionOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrDeleted) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	state := json.RawMessage("null")
	if err := s.State(&state); err != nil {
		return nil, false, err
	}
	p, err = checkPointOf(state)
	return p, err == nil && p != nil, err
}

// maxRaces bounds how often Set begins again after it lost to another writer.
const maxRaces = 16

// Set replaces a checkpoint: Get returns what was written last, and earlier ones stay as versions. A checkpoint
// that is equal to the stored one, as that of a request that is sent again, makes no version. A session that was
// deleted is created again.
func (e Eino) Set(ctx context.Context, id string, p []byte) (err error) {
	for range maxRaces {
		if err = e.set(ctx, id, p); !errors.Is(err, coppice.ErrConflict) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

func (e Eino) set(ctx context.Context, id string, p []byte) (err error) {
	s, err := e.Store.OpenOrCreate(ctx, key(id), &coppice.SessionOptions{Title: id, Again: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var was json.RawMessage
	if err := s.State(&was); err != nil {
		return err
	}
	if len(was) > 0 {
		if old, err := checkPointOf(was); err != nil || old != nil && bytes.Equal(old, p) {
			return err
		}
	}
	_, err = s.Commit(ctx, coppice.Turn{State: stateOf(p)})
	return err
}

// Delete makes Get find nothing. The id may be set again: the checkpoint is cleared, and its earlier versions stay
// until Store.Delete.
func (e Eino) Delete(ctx context.Context, id string) (err error) {
	s, err := e.Store.Open(ctx, key(id), nil)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrDeleted) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = s.Commit(ctx, coppice.Turn{State: json.RawMessage("null"), Reason: "cleared"})
	return err
}
