// Package check finds and names damage: Verify compares every object of a session with its checksums and with what
// refers to it, and writes nothing (I14). An Inventory is what the names of a session's objects show, without a look at
// their content. Package repair makes a damaged session usable again.
//
// What Verify finds is a list of problems, each with the object, the byte offset where that is known, a
// Kind and one sentence. Kinds that are damage (Kind.Damage) mean that something is lost or can no longer
// be trusted; the others are notes on a healthy session: a torn tail that the next writer moves aside, an
// object of another writer, a parent that an imported file never had.
//
// Shallow, Verify reads the checkpoint, the index objects, the index at the end of every sealed segment,
// the plain segments whole, and asks for the length of the rest. Deep, it reads every byte: hashes, the
// chain of commit lines from the session header to the head, every document from its keyframe and patches,
// every snapshot, image and imported original.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
)

// Kind is a sort of problem.
type Kind string

// The kinds of problems. Damage first, then notes, then what Repair did.
const (
	Damaged Kind = "damaged" // bytes fail their checksum, or have a form that no writer makes
	Missing Kind = "missing" // another object refers to it, and it does not exist
	// an intact object that is not the one that its reference names: of another session, or out of order.
	Mismatch Kind = "mismatch"

	// the store refuses to read it (no permission, a bad sector), so that its content is not known.
	Refused Kind = "unreadable"

	TooNew Kind = "too-new" // intact, of a format that this program does not read
	// bytes of a write that was never acknowledged; the next writer moves them aside.
	TornTail      Kind = "torn-tail"
	ForeignBytes  Kind = "foreign-bytes"  // whole lines of another program after the last commit
	ForeignObject Kind = "foreign-object" // a key that no object of a store has
	NoCheckpoint  Kind = "no-checkpoint"  // on a disk: the log suffices without it, but opening is slower
	Leftover      Kind = "leftover"       // of a deleted session, of one that was not created, or of a repair
	Tree          Kind = "tree"           // an entry without its parent, or a cycle, stored like this

	// a repair could not recover it and recorded that, so that the session is complete without it.
	Lost     Kind = "lost"
	Erased   Kind = "erased"   // entries that were erased on request: a stub is in their place
	Rebuilt  Kind = "rebuilt"  // Repair wrote it again from other objects
	Salvaged Kind = "salvaged" // Repair took what is intact over into another object
)

// Damage reports whether the kind is damage: something cannot be trusted, or is lost and no repair recorded that.
func (k Kind) Damage() bool { return k == Damaged || k == Missing || k == Mismatch || k == Refused }

// Problem is one finding.
type Problem struct {
	Session string // "" = of the store
	Object  string // key
	Offset  int64  // byte offset in the object; 0 also where it is not known
	Kind    Kind
	Detail  string // one sentence
	Err     error  // the cause, where there is one
}

// Error returns kind, place and detail.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s: %s at byte %d: %s", p.Kind, p.Object, p.Offset, p.Detail)
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Report is what a run did and found.
type Report struct {
	Sessions, Objects, Removed int
	Bytes                      int64 // read by Verify, written by Repair, freed by a collection
	Problems                   []*Problem

	foreign int
}

const (
	problemsMax = 10_000 // of each session; after them only their number is reported
	foreignMax  = 100    // foreign objects that are named; so they never crowd out damage
)

// Add adds the report of another run.
func (r *Report) Add(o Report) {
	r.Sessions += o.Sessions
	r.Objects += o.Objects
	r.Removed += o.Removed
	r.Bytes += o.Bytes
	r.Problems = append(r.Problems, o.Problems...)
}

// note adds a problem.
func (r *Report) note(p Problem) {
	if len(r.Problems) < problemsMax {
		r.Problems = append(r.Problems, &p)
	}
}

// stranger files a key that is no object of a store.
func (r *Report) stranger(session, key string) {
	if r.foreign++; r.foreign <= foreignMax {
		r.note(Problem{
			Session: session, Object: key, Kind: ForeignObject,
			Detail: "no object of a store has such a key; it is left alone",
		})
	}
}

// strangers files how many more there were.
func (r *Report) strangers(session, prefix string) {
	if more := r.foreign - foreignMax; more > 0 {
		r.note(Problem{
			Session: session, Object: prefix, Kind: ForeignObject,
			Detail: fmt.Sprintf("%d more foreign objects", more),
		})
	}
	r.foreign = 0
}

// Sessions returns the ids of all sessions of which anything is there, in order, and notes what is no part
// of a store.
func Sessions(ctx context.Context, b backend.Backend, r *Report) ([]string, error) {
	seen := map[string]bool{}
	var ids []string
	take := func(name, key string) {
		id, ok := layout.Unescape(name)
		switch {
		case !ok:
			r.stranger("", key)
		case !seen[id]:
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, o := range []backend.ListOptions{
		{Delimiter: "/"},
		{Prefix: layout.Checkpoints},
		{Prefix: layout.Sessions, Delimiter: "/"},
	} {
		for info, err := range b.List(ctx, o) {
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", o.Prefix, err)
			}
			name := strings.TrimPrefix(info.Key, o.Prefix)
			switch {
			case o.Prefix == "":
				ours := []string{
					layout.Checkpoints, layout.Sessions, layout.CAS, layout.Catalogue, layout.Retention,
				}
				if !slices.Contains(ours, info.Key) {
					r.stranger("", info.Key)
				}
			case o.Prefix == layout.Checkpoints:
				take(name, info.Key)
			case info.Prefix:
				take(strings.TrimSuffix(name, "/"), info.Key)
			default:
				r.stranger("", info.Key)
			}
		}
	}
	r.strangers("", "")
	return ids, nil
}

// failuresMost bounds how many sessions of a store may fail before the others are not tried any more.
const failuresMost = 16

// Each runs one on cfg's session, or, where that is "", on every session of the store: also on those after one that
// fails. Their errors are joined. That the store refuses to read a session is a problem of the report.
func Each(ctx context.Context, cfg journal.Config, do func(cfg journal.Config) (Report, error)) (Report, error) {
	var all Report
	one := func(cfg journal.Config) (Report, error) {
		r, err := do(cfg)
		b, ok := errors.AsType[*backend.Error](err)
		if !ok || !backend.Refused(err) || b.Op != "get" && b.Op != "list" && b.Op != "stat" {
			return r, err
		}
		r.note(Problem{
			Session: cfg.Session, Object: b.Key, Kind: Refused, Err: err,
			Detail: "the store does not let it be read, so the session is left as it is: " + b.Error(),
		})
		return r, nil
	}
	if cfg.Session != "" {
		return one(cfg)
	}
	ids, err := Sessions(ctx, cfg.Backend, &all)
	if err != nil {
		return all, err
	}
	var failed []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return all, errors.Join(append(failed, err)...)
		}
		cfg.Session = id
		r, err := one(cfg)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted or gone meanwhile
		}
		all.Add(r)
		if err == nil {
			continue
		}
		if failed = append(failed, err); len(failed) == failuresMost {
			err = errors.Join(failed...)
			return all, fmt.Errorf("%d sessions failed, the others were not tried: %w", failuresMost, err)
		}
	}
	return all, errors.Join(failed...)
}
