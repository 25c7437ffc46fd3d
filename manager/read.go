package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Path returns the entries from the root to one of them (an id or a unique prefix; "" = the head), whole.
func Path(ctx context.Context, s *coppice.Session, to string) ([]transcript.Entry, error) {
	var path []transcript.Entry
	for e, err := range s.Path(ctx, to) {
		if err != nil {
			return nil, err
		}
		path = append(path, e)
	}
	slices.Reverse(path)
	return path, nil
}

// Label is a user's name for an entry.
type Label struct {
	Entry, Text string
	Time        time.Time // when it was set
}

// Labels returns the labels in force, in the order in which they were set, with untruncated texts.
func Labels(ctx context.Context, s *coppice.Session) ([]Label, error) {
	t, err := s.Tree(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for ord := range t.Labels {
		ids = append(ids, t.ID(ord))
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var labels []Label
	for e, err := range s.Entries(ctx, ids...) {
		if err != nil {
			return nil, err
		}
		var body struct {
			Target string `json:"targetId"`
			Label  string `json:"label"`
		}
		if err := e.Decode(&body); err != nil {
			continue // of another shape: the tree ignores it too
		}
		labels = slices.DeleteFunc(labels, func(l Label) bool { return l.Entry == body.Target })
		if _, there := t.Node(body.Target); there && body.Label != "" {
			labels = append(labels, Label{body.Target, body.Label, e.Time})
		}
	}
	return labels, nil
}

// Rescue writes the path to the head as a pi session file, including uncommitted entries, and returns the number of
// entries. It is meant for failing commits: uncommitted entries come from memory, so they are written even if the store
// cannot be reached. Then the file begins at the oldest entry that could be read, or contains the messages of the next
// context, whichever is more; the error, which is returned although the file is written, reports it.
func Rescue(ctx context.Context, s *coppice.Session, w io.Writer) (entries int, err error) {
	var lines [][]byte
	var lost error
	for e, err := range s.Path(ctx, "") {
		if err != nil {
			lost = fmt.Errorf("rescue session %s: part of it could not be read: %w", s.ID(), err)
			break
		}
		lines = append(lines, e.Raw)
	}
	slices.Reverse(lines)
	if lost != nil {
		if seen := messages(ctx, s); len(seen) > len(lines) {
			lines = seen
		}
	}
	info := s.Info()
	header, err := json.Marshal(struct {
		Type    string    `json:"type"`
		Version int       `json:"version"`
		ID      string    `json:"id"`
		Time    time.Time `json:"timestamp"`
		Cwd     string    `json:"cwd"`
		Title   string    `json:"title,omitempty"`
	}{"session", 3, s.ID(), info.Created, info.Cwd, info.Title})
	if err != nil {
		return 0, fmt.Errorf("rescue session %s: %w", s.ID(), err)
	}
	lines = append([][]byte{header}, lines...)
	if _, err := w.Write(append(bytes.Join(lines, []byte("\n")), '\n')); err != nil {
		return 0, fmt.Errorf("rescue session %s: %w", s.ID(), err)
	}
	return len(lines) - 1, lost
}

// messages returns the context as lines, each the child of the one before. It is in memory and needs no store.
func messages(ctx context.Context, s *coppice.Session) [][]byte {
	c, err := s.Context(ctx)
	if err != nil {
		return nil // an image cannot be read: there are no messages
	}
	var lines [][]byte
	parent := ""
	for i, m := range c.Messages {
		id := m.Entry
		if id == "" {
			id = fmt.Sprintf("rescued-%d", i) // made from a summary
		}
		d := entry.Message(m.Raw)
		line, err := d.Line(id, parent, s.Info().Updated)
		if err != nil {
			continue // not a message of a pi file
		}
		lines, parent = append(lines, line), id
	}
	return lines
}
