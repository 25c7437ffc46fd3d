package api

import (
	"time"

	"github.com/coppice-go/coppice/internal/importer"
)

// Import is the result of an import of files.
type Import struct {
	Found    []FoundProgram `json:"found,omitzero" doc:"what there is of each program, where no file was named"`
	Imported []Imported     `json:"imported" doc:"one element for each file"`
	Total    ImportTotal    `json:"total"`
}

// FoundProgram is a program of which there are sessions on a machine.
type FoundProgram struct {
	Program string `json:"program"`
	Folder  string `json:"folder"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

// Imported is a file that became a session, or error is why it did not; then only file is set with it.
type Imported struct {
	File        string             `json:"file"`
	Format      string             `json:"format,omitempty"`
	Session     string             `json:"session,omitempty"`
	Entries     *int               `json:"entries,omitempty" doc:"number of entries of the session"`
	Unchanged   bool               `json:"unchanged,omitempty" doc:"imported before: nothing was written"`
	Deleted     *time.Time         `json:"deleted,omitempty" doc:"when its session was deleted: nothing was written"`
	Grew        bool               `json:"grew,omitempty" doc:"entries were added to the session of an earlier import"`
	Added       int                `json:"added,omitempty" doc:"number of entries that were added"`
	Messages    int                `json:"messages,omitempty" doc:"messages on the lines of what was imported"`
	Branches    int                `json:"branches,omitempty" doc:"messages on its branches"`
	BadLines    *int               `json:"badLines,omitempty" doc:"number of lines that were skipped"`
	Diagnostics []ImportDiagnostic `json:"diagnostics,omitzero"`
	Children    []string           `json:"children,omitempty" doc:"other sessions that were in the file"`
	Replaced    []string           `json:"replaced,omitempty" doc:"sessions that were deleted for this one"`
	Error       *Problem           `json:"error,omitempty"`
}

// ImportDiagnostic is something unusual in a file that was imported.
type ImportDiagnostic struct {
	Kind    string `json:"kind"`
	Entry   string `json:"entry,omitempty"`
	Line    uint64 `json:"line,omitempty" doc:"number of the line in the file, from 1"`
	Ordinal uint64 `json:"ordinal,omitempty" doc:"number of the entry in the session"`
	Detail  string `json:"detail,omitempty"`
}

// ImportedOf returns the element for a file that became a session.
func ImportedOf(file string, r importer.Result) Imported {
	i := Imported{
		File: file, Format: r.Format, Session: r.Session, Entries: &r.Entries, Unchanged: r.Unchanged, Grew: r.Grew,
		Added: r.Added, Messages: r.Messages, Branches: r.Branches, BadLines: &r.BadLines, Children: r.Children,
		Replaced: r.Replaced,
		Diagnostics: convert(r.Diagnostics, func(d importer.Diagnostic) ImportDiagnostic {
			return ImportDiagnostic(d)
		}),
	}
	if !r.Deleted.IsZero() {
		i.Deleted = &r.Deleted
	}
	return i
}

// ImportTotal is the result of all files together.
type ImportTotal struct {
	Files     int `json:"files"`
	New       int `json:"new"`
	Grown     int `json:"grown"`
	Unchanged int `json:"unchanged"`
	Deleted   int `json:"deleted" doc:"number of files whose sessions were deleted: not imported again"`
	Failed    int `json:"failed"`
	Entries   int `json:"entries" doc:"number of entries that were added"`

	Sessions    int `json:"sessions" doc:"sessions that are new or have grown, those of agents too"`
	Messages    int `json:"messages" doc:"number of messages on their current lines"`
	Branches    int `json:"branches" doc:"number of messages on their branches"`
	Diagnostics int `json:"diagnostics"`

	counted map[string]importer.Result // by session
}

// Add counts the result of one file. Of files of one session, which grew from one to the next, the last one counts.
func (t *ImportTotal) Add(r importer.Result) {
	if t.counted == nil {
		t.counted = map[string]importer.Result{}
	}
	t.Files++
	t.Diagnostics += r.Remarks()
	for _, id := range r.Children {
		t.count(id, t.counted[id])
	}
	switch {
	case !r.Deleted.IsZero():
		t.Deleted++
		return
	case r.Unchanged:
		t.Unchanged++
		t.Messages, t.Branches = t.Messages+r.Messages, t.Branches+r.Branches // of its agents
		return
	case r.Grew:
		t.Grown++
		t.Entries += r.Added
	default:
		t.New++
		t.Entries += r.Entries
	}
	t.count(r.Session, r)
}

// count counts a session, in place of what was counted of it before.
func (t *ImportTotal) count(id string, r importer.Result) {
	was, again := t.counted[id]
	t.counted[id] = importer.Result{Messages: r.Messages, Branches: r.Branches}
	t.Messages, t.Branches = t.Messages+r.Messages-was.Messages, t.Branches+r.Branches-was.Branches
	if !again {
		t.Sessions++
	}
}

// Fail counts a file that was not imported.
func (t *ImportTotal) Fail() {
	t.Files++
	t.Failed++
}

// Exported is the answer to an export to a file.
type Exported struct {
	Session string         `json:"session"`
	Format  string         `json:"format"`
	File    string         `json:"file"`
	Bytes   int64          `json:"bytes"`
	Losses  map[string]int `json:"losses,omitempty" doc:"what the format cannot express: occurrences, by kind"`
}
