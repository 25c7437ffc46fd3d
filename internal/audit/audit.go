// Package audit keeps an audit log: a file of JSON lines to which lines are only appended, each with the SHA-256 of the
// line before it.
//
// An act has two lines: one that is durable before the act begins, and one of its end. A line without its end means
// that the program died, or that it could not write: the act was done, or not. Lines have no content of sessions and no
// secrets.
//
// Several processes can write one log: each append holds the lock of the file. A line that was torn by a crash stays as
// it is; the next append marks it.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Act is what was done, and by whom.
type Act struct {
	Who     string   `json:"who,omitempty"`     // a name of a token or user
	Store   string   `json:"store,omitempty"`   // its address; "" = that of the server
	Tenant  string   `json:"tenant,omitempty"`  // "" = none
	Act     string   `json:"act"`               // such as delete
	Session string   `json:"session,omitempty"` // "" = of no session, or of several
	IDs     []string `json:"ids,omitempty"`     // of what else it was done to; at most maxIDs
	More    int      `json:"more,omitempty"`    // ids that are left out
}

// Results of acts.
const (
	Begun   = "begun"
	Done    = "done"
	Failed  = "failed"  // nothing was done, or a part of it
	Unknown = "unknown" // it was done, or not
	Refused = "refused" // who asked has no right to it
	DryRun  = "dry-run" // as was asked for, nothing was changed
	torn    = "torn"    // of the act torn
)

// Line is a line of the log.
type Line struct {
	Prev string    `json:"prev"` // SHA-256 of the line before, without its end, in hex; of the first line: of nothing
	Time time.Time `json:"time"`
	Act
	Result string `json:"result"`
	Code   string `json:"code,omitempty"` // of an error
	Of     string `json:"of,omitempty"`   // SHA-256 of the line with which the act began
	Torn   string `json:"torn,omitempty"` // SHA-256 of the bytes after the line before, which are of no whole line
}

// Bounds.
const (
	maxIDs  = 100
	maxLine = 64 << 10      // bytes
	window  = 4 * maxLine   // of the end of the file in which the last whole line has to be
	maxText = maxLine / 256 // bytes of an id or name in a line
)

// bounded returns the act as a line can hold it.
func (a Act) bounded() Act {
	if len(a.IDs) > maxIDs {
		a.IDs, a.More = a.IDs[:maxIDs], a.More+len(a.IDs)-maxIDs
	}
	ids := make([]string, 0, len(a.IDs))
	for _, id := range a.IDs {
		ids = append(ids, cut(id))
	}
	a.IDs = ids
	for _, text := range []*string{&a.Who, &a.Store, &a.Tenant, &a.Act, &a.Session} {
		*text = cut(*text)
	}
	return a
}

func cut(text string) string {
	if len(text) > maxText {
		return text[:maxText]
	}
	return text
}

func hashOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
