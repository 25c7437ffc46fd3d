package coppice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Target is a point in time; at most one field is set, and the zero Target is the head. Its text is
// the command line's: head, seq:12, commit:ID, entry:ID, snap:ID, tag:NAME, an RFC 3339 time, or a bare
// word, which is looked for as a branch, an entry or commit id, a snapshot and a tag, in this order. Ids
// may be unique prefixes. It serves flag.TextVar.
type Target struct {
	Seq                          uint64    // a commit's number; seq 0, which has no entries, is written "seq:0"
	Commit, Entry, Snapshot, Tag string    // ids, and a tag's name
	Time                         time.Time // the newest commit that is not later

	first bool   // "seq:0"
	bare  string // a bare word
}

// maxTargetText bounds the text of a target, in bytes.
const maxTargetText = 512

// MarshalText returns the text of a target. A target whose text UnmarshalText refuses is an error.
func (t Target) MarshalText() ([]byte, error) {
	text, err := t.text()
	if err != nil {
		return nil, err
	}
	var back Target
	if err := back.UnmarshalText(text); err != nil {
		return nil, err
	}
	return text, nil
}

func (t Target) text() ([]byte, error) {
	if err := t.valid(); err != nil {
		return nil, err
	}
	switch {
	case t.Seq > 0 || t.first:
		return strconv.AppendUint([]byte("seq:"), t.Seq, 10), nil
	case t.Commit != "":
		return []byte("commit:" + t.Commit), nil
	case t.Entry != "":
		return []byte("entry:" + t.Entry), nil
	case t.Snapshot != "":
		return []byte("snap:" + t.Snapshot), nil
	case t.Tag != "":
		return []byte("tag:" + t.Tag), nil
	case !t.Time.IsZero():
		return t.Time.AppendFormat(nil, time.RFC3339Nano), nil
	case t.bare != "":
		return []byte(t.bare), nil
	}
	return []byte("head"), nil
}

// UnmarshalText reads the text of a target.
func (t *Target) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" || len(s) > maxTargetText ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("target %.40q: want head, seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a time or an id", s)
	}
	kind, rest, found := strings.Cut(s, ":")
	if found && rest == "" {
		return fmt.Errorf("target %q: nothing after the colon", s)
	}
	switch {
	case s == "head":
		*t = Target{}
	case found && kind == "seq":
		n, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			return fmt.Errorf("target %q: want a commit's number: %w", s, errors.Unwrap(err))
		}
		*t = Target{Seq: n, first: n == 0}
	case found && kind == "commit":
		*t = Target{Commit: rest}
	case found && kind == "entry":
		*t = Target{Entry: rest}
	case found && kind == "snap":
		*t = Target{Snapshot: rest}
	case found && kind == "tag":
		*t = Target{Tag: rest}
	default:
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			*t = Target{Time: at}
			break
		}
		if found {
			return fmt.Errorf("target %q: neither a time nor one of seq, commit, entry, snap, tag", s)
		}
		*t = Target{bare: s}
	}
	return nil
}

// String is the text of the target; what is wrong with it, where it has none.
func (t Target) String() string {
	text, err := t.text()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// valid refuses a target with more than one field.
func (t Target) valid() error {
	n := 0
	for _, set := range []bool{
		t.Seq > 0 ||
			t.first, t.Commit != "", t.Entry != "", t.Snapshot != "", t.Tag != "", !t.Time.IsZero(), t.bare != "",
	} {
		if set {
			n++
		}
	}
	if n > 1 {
		return errors.New("target with more than one field set")
	}
	return nil
}
