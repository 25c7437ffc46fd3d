package server

import (
	"context"
	"slices"
)

// maxFound bounds the texts whose hits a view remembers.
const maxFound = 8

// founds are the hits of the texts that were marked last in a view: a bit for each row.
type founds struct {
	turn chan struct{} // capacity one: a lock for looking and searching
	list []foundText   // the one used last is last
}

// foundText is the hits of one text.
type foundText struct {
	text string
	rows []uint64
}

func newFounds() founds { return founds{turn: make(chan struct{}, 1)} }

// get returns the hits of a text. One search is made at a time, for it reads the whole session; the end of ctx ends the
// waiting for it.
func (f *founds) get(ctx context.Context, text string, search func() ([]uint64, error)) ([]uint64, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case f.turn <- struct{}{}:
	}
	defer func() { <-f.turn }()
	i := slices.IndexFunc(f.list, func(t foundText) bool { return t.text == text })
	if i < 0 {
		rows, err := search()
		if err != nil {
			return nil, err
		}
		if len(f.list) == maxFound {
			f.list = slices.Delete(f.list, 0, 1)
		}
		f.list = append(f.list, foundText{text, rows})
		return rows, nil
	}
	hit := f.list[i]
	f.list = append(slices.Delete(f.list, i, i+1), hit)
	return hit.rows, nil
}
