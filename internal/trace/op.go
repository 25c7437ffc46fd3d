package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/backend"
)

// Op is one operation as it was asked and how it ended.
type Op struct {
	Op     string // get, put, append, cut, resync, stat, list or delete
	Key    string // of a listing: its prefix
	Detail string // the condition, range, offset or listing options; "" = none
	Bytes  int64  // returned, given, cut off or resynced; of Stat the object's size, of List the results
	Err    error
}

// String returns the operation as one line that is equal in equal runs:
//
//	put checkpoint_latest/x if-match ok 1234
//	get sessions/x/log bytes 0+4096 ok 4096
//	append sessions/x/log @120 precondition failed 88
//	put checkpoint_latest/x if-match error (outcome unknown) 1234
//
// Versions and the texts of other errors are left out.
func (o Op) String() string {
	parts := []string{o.Op}
	for _, part := range []string{o.Key, o.Detail, o.result()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if o.Op != "delete" && (o.Err == nil || o.Op == "put" || o.Op == "append") {
		parts = append(parts, fmt.Sprint(o.Bytes))
	}
	return strings.Join(parts, " ")
}

// plain are the errors whose text says all.
var plain = []error{
	backend.ErrNotExist, backend.ErrPrecondition, backend.ErrRange, backend.ErrTooLarge, backend.ErrKey,
	backend.ErrNoCAS, backend.ErrClosed, context.Canceled, context.DeadlineExceeded,
}

func (o Op) result() string {
	if o.Err == nil {
		return "ok"
	}
	text := "error"
	for _, err := range plain {
		if errors.Is(o.Err, err) {
			text = err.Error()
			break
		}
	}
	switch o.Op {
	case "get", "stat", "list":
		return text
	}
	out := backend.OutcomeOf(o.Err)
	if out == backend.NotApplied && text != "error" {
		return text
	}
	return fmt.Sprintf("%s (%s)", text, out)
}

func condition(c backend.Cond) string {
	if _, match := c.Match(); match {
		return "if-match"
	}
	if c.Absent() {
		return "if-absent"
	}
	return ""
}

func at(off int64) string { return fmt.Sprintf("@%d", off) }

func listing(o backend.ListOptions) string {
	var parts []string
	if o.After != "" {
		parts = append(parts, "after "+o.After)
	}
	if o.Delimiter != "" {
		parts = append(parts, "delimiter "+o.Delimiter)
	}
	if o.Limit > 0 {
		parts = append(parts, fmt.Sprintf("limit %d", o.Limit))
	}
	return strings.Join(parts, ", ")
}
