package listing

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// summary returns the summary of a session as it is now: that of its checkpoint, or where the log has more, or there is
// no checkpoint, that of the log. That of a session which was deleted meanwhile is empty.
func (l *lister) summary(ctx context.Context, s *session) (sum checkpoint.Summary, err error) {
	if k := (known{sum: s.sum}); len(l.o.Docs) == 0 {
		if sum, ok := k.summary(); ok {
			return sum, nil
		}
	}
	id, _ := layout.Unescape(s.name())
	only := checkpoint.Summary{ID: id, Updated: s.info.ModTime}
	switch {
	case s.refused != nil:
		only.Cause = s.refused.Error()
		return only, nil
	case s.lost && s.log == nil: // no segment either
		return checkpoint.Summary{}, nil
	case !s.lost:
		sum, err = l.stored(ctx, s.info, only)
		if backend.Refused(err) {
			only.Cause = err.Error()
			return only, nil
		}
		if err != nil || sum.ID == "" || s.log == nil || !s.log.beyond(&sum) {
			sum.LogName, sum.LogBytes = "", 0
			if err == nil && (sum.Commit != "" || sum.Tombstone) {
				l.remember(s, &sum)
			}
			return sum, err
		}
	}
	if l.rebuild == nil {
		return only, nil
	}
	sum, err = l.rebuild(ctx, id)
	switch {
	case ctx.Err() != nil:
		return sum, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		only.Cause = err.Error()
		return only, nil
	}
	l.remember(s, &sum)
	return sum, nil
}

var errForeign = errors.New("it is the checkpoint of another session")

// head reads the summary at the beginning of a checkpoint. That of one which is gone is empty, and of one that cannot
// be decoded it is only.
func (l *lister) head(ctx context.Context, info backend.Info, only checkpoint.Summary) (checkpoint.Summary, error) {
	prefix, _, err := l.b.Get(ctx, info.Key, backend.Bytes(0, min(info.Size, summaryBytes)))
	if errors.Is(err, backend.ErrRange) { // replaced by a smaller one
		prefix, _, err = l.b.Get(ctx, info.Key, backend.Range{})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return checkpoint.Summary{}, err
	}
	sum, err := checkpoint.DecodeSummary(prefix)
	if err == nil && (sum.ID != only.ID || sum.Snapshot != "") {
		err = errForeign
	}
	if err != nil {
		only.Cause = info.Key + ": " + err.Error()
		return only, nil
	}
	return sum, nil
}

// stored is head, with what of the summary only the whole checkpoint has.
func (l *lister) stored(
	ctx context.Context, info backend.Info, only checkpoint.Summary,
) (checkpoint.Summary, error) {
	if len(l.o.Docs) > 0 && !l.o.chooses() {
		return l.whole(ctx, info, only, only)
	}
	sum, err := l.head(ctx, info, only)
	if err != nil {
		return sum, err
	}
	switch {
	case len(l.o.Docs) > 0 && (sum.MetaElsewhere || l.o.wants(&sum)):
		return l.whole(ctx, info, only, only)
	case sum.MetaElsewhere:
		return l.whole(ctx, info, only, sum)
	}
	return sum, nil
}

// whole reads a checkpoint for what its summary does not hold: documents, and metadata that is too long for it. Where
// it cannot be decoded the summary is the one given: opening the session says what is wrong.
func (l *lister) whole(
	ctx context.Context, info backend.Info, only, otherwise checkpoint.Summary,
) (checkpoint.Summary, error) {
	p, _, err := l.b.Get(ctx, info.Key, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return otherwise, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err != nil {
		if otherwise.Commit == "" {
			otherwise.Cause = info.Key + ": " + err.Error()
		}
		return otherwise, nil
	}
	sum := o.Summary
	if sum.ID != only.ID || sum.Snapshot != "" {
		only.Cause = info.Key + ": " + errForeign.Error()
		return only, nil
	}
	if len(l.o.Docs) > 0 {
		doc, err := checkpoint.DecodeDocument(o.Document)
		if err != nil {
			only.Cause = info.Key + ": " + err.Error()
			return only, nil
		}
		sum.Docs = Chosen(doc.Docs, l.o.Docs)
	}
	return sum, nil
}

// Chosen returns documents by their names; nil where none of them is there.
func Chosen(docs map[string]json.RawMessage, names []string) (chosen map[string]json.RawMessage) {
	for _, name := range names {
		if p, ok := docs[name]; ok {
			if chosen == nil {
				chosen = map[string]json.RawMessage{}
			}
			chosen[name] = p
		}
	}
	return chosen
}
