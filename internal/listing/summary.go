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
		sum, err = l.fromStore(ctx, s, only)
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
func (l *lister) head(ctx context.Context, s *session, only checkpoint.Summary) (checkpoint.Summary, error) {
	part := backend.Bytes(0, min(s.info.Size, summaryBytes))
	if s.unlisted && s.info.Size < summaryBytes { // it may have grown
		part = backend.Range{}
	}
	prefix, err := l.get(ctx, s, part)
	if errors.Is(err, backend.ErrRange) { // replaced by a smaller one
		prefix, err = l.get(ctx, s, backend.Range{})
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
		only.Cause = s.info.Key + ": " + err.Error()
		return only, nil
	}
	return sum, nil
}

// get reads a checkpoint, and notes of one that was not listed what it is.
func (l *lister) get(ctx context.Context, s *session, part backend.Range) ([]byte, error) {
	p, info, err := l.b.Get(ctx, s.info.Key, part)
	if err == nil && s.unlisted {
		s.info.ModTime = info.ModTime
		if s.stored = (stamp{}); info.Version != "" && string(info.Version) == s.row.checkpoint.version {
			s.stored = s.row.checkpoint
		}
	}
	return p, err
}

// fromStore is head, with what of the summary only the whole checkpoint has.
func (l *lister) fromStore(ctx context.Context, s *session, only checkpoint.Summary) (checkpoint.Summary, error) {
	if len(l.o.Docs) > 0 && !l.o.chooses() {
		return l.whole(ctx, s, only, only)
	}
	sum, err := l.head(ctx, s, only)
	if err != nil {
		return sum, err
	}
	switch {
	case len(l.o.Docs) > 0 && (sum.MetaElsewhere || l.o.wants(&sum)):
		return l.whole(ctx, s, only, only)
	case sum.MetaElsewhere:
		return l.whole(ctx, s, only, sum)
	}
	return sum, nil
}

// whole reads a checkpoint for what its summary does not hold: documents, and metadata that is too long for it. Where
// it cannot be decoded the summary is the given one: opening the session returns the error.
func (l *lister) whole(
	ctx context.Context, s *session, only, otherwise checkpoint.Summary,
) (checkpoint.Summary, error) {
	p, err := l.get(ctx, s, backend.Range{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.Summary{}, nil
	case err != nil:
		return otherwise, err
	}
	o, err := checkpoint.DecodeObject(p)
	if err != nil {
		if otherwise.Commit == "" {
			otherwise.Cause = s.info.Key + ": " + err.Error()
		}
		return otherwise, nil
	}
	sum := o.Summary
	if sum.ID != only.ID || sum.Snapshot != "" {
		only.Cause = s.info.Key + ": " + errForeign.Error()
		return only, nil
	}
	if len(l.o.Docs) > 0 {
		doc, err := checkpoint.DecodeDocument(o.Document)
		if err != nil {
			only.Cause = s.info.Key + ": " + err.Error()
			return only, nil
		}
		sum.Docs = Chosen(doc.Docs, l.o.Docs)
	}
	return sum, nil
}

// look finds out how a session is that a catalogue has: on a store that appends by two looks, elsewhere that is left to
// the read of its checkpoint.
func (l *lister) look(ctx context.Context, s *session) error {
	if !l.appends {
		s.unlisted = true
		s.info.Size = s.row.checkpoint.size
		if s.lost = s.row.checkpoint == (stamp{}) && s.row.log.name != ""; s.lost {
			return l.follow(ctx, s)
		}
		return nil
	}
	s.lost = true
	for info, err := range l.b.List(ctx, backend.ListOptions{Prefix: s.info.Key, Limit: 1}) {
		if err != nil {
			return err
		}
		if info.Key == s.info.Key {
			s.info, s.stored, s.lost = info, stampOf(info), false
		}
	}
	return l.follow(ctx, s)
}

// recall returns what is known of a session if it is as it was, by one look at its log.
func (l *lister) recall(ctx context.Context, s *session) (k known, ok bool, err error) {
	if k, ok = l.catalogue.get(s.name()); !ok && s.row != nil {
		k, ok = *s.row, true
	}
	if !ok || !l.appends || k.checkpoint != s.stored {
		return k, false, nil
	}
	if k.log.name == "" {
		sum, ok := k.summary()
		return k, ok && sum.Tombstone, nil
	}
	key, want := k.newest(s.name())
	if key == "" {
		return k, false, nil
	}
	now := stamp{}
	for info, err := range l.b.List(ctx, backend.ListOptions{Prefix: key, Limit: 1}) {
		if err != nil {
			return k, false, err
		}
		if info.Key == key {
			now = stampOf(info)
		}
	}
	now.version = ""
	return k, now == want, nil
}

// newest returns the key of the segment that changes with the next commit, and how it was. "" = that is not known. Of a
// deleted session none is: its tombstone is written once more before another session begins under its id.
func (k *known) newest(name string) (key string, was stamp) {
	seg, ok := layout.ParseSegment(k.log.name)
	if !ok || k.log.bytes < 0 { // sealing it may add a line that names the next one
		return "", stamp{}
	}
	id, _ := layout.Unescape(name)
	return seg.PlainKey(id), stamp{size: k.log.bytes, time: k.log.changed.UnixNano()}
}

// remember keeps what was found out about a session, unless it changed just now. sum is nil if it was not read.
func (l *lister) remember(s *session, sum *checkpoint.Summary) {
	just := l.now.Sub(s.info.ModTime) < clockGrain && (l.appends || s.stored.version == "")
	if l.catalogue == nil || just || len(l.o.Docs) > 0 || l.appends && s.log == nil && !s.bare ||
		s.stored == (stamp{}) && !s.lost {
		return
	}
	k := known{checkpoint: s.stored, at: latest(s.info).UnixMilli()}
	if s.log != nil {
		k.log = *s.log
	}
	switch {
	case sum == nil:
	case sum.Tombstone:
		k.sum, k.at = encodeSum(sum, l.appends), 0
	default:
		k.sum, k.at = encodeSum(sum, l.appends), min(k.at, sum.Updated.UnixMilli())
	}
	if s.row == nil || !k.same(s.row) {
		l.catalogue.put(s.name(), k)
	}
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
