package api

import (
	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
)

// Erased is what an erasure did to one session, or with dryRun would do.
type Erased struct {
	Session  string     `json:"session"`
	Entries  []string   `json:"entries" doc:"ids that are erased, amendments of entries among them"`
	States   []string   `json:"states,omitempty" doc:"pointers into the state that led to a value"`
	Docs     []string   `json:"docs,omitempty" doc:"small documents that were there"`
	Already  []string   `json:"already,omitempty" doc:"ids that were erased before"`
	Commit   string     `json:"commit,omitempty" doc:"that records it; absent: nothing was to be done, or dryRun"`
	Written  int        `json:"written" doc:"number of objects that were written again"`
	Removed  int        `json:"removed" doc:"number of objects that were removed"`
	Bytes    int64      `json:"bytes" doc:"number of bytes written"`
	Images   int        `json:"images" doc:"number of images among what was removed"`
	Original *Replaced  `json:"original,omitempty" doc:"of the imported file that is kept, if it changed"`
	Others   []Relative `json:"others" doc:"sessions that have some of the entries too: forks, other imports"`
	Trash    []string   `json:"trash" doc:"items of the trash that have some of the entries, or had them"`
	Purged   bool       `json:"purged,omitempty" doc:"these items were removed"`
	DryRun   bool       `json:"dryRun,omitempty" doc:"nothing was changed"`
	IO       backend.IO `json:"io" doc:"requests to the backend, with dryRun those that it would make"`
}

// Replaced has the SHA-256 of an imported file before and after lines of it were erased.
type Replaced struct {
	Before string `json:"before" doc:"in hex"`
	After  string `json:"after" doc:"in hex"`
}

// Relative is a session that has entries of another one.
type Relative struct {
	Session string   `json:"session"`
	Entries []string `json:"entries"`
	States  []string `json:"states,omitempty" doc:"pointers that lead to a value in its states too"`
	Docs    []string `json:"docs,omitempty" doc:"small documents that it has too"`
	Commit  string   `json:"commit,omitempty" doc:"that records their erasure; absent: they are not erased, or dryRun"`
}

// ErasedIn returns the other sessions in which a call erased entries.
func ErasedIn(r coppice.Erased) (ids []string) {
	for _, other := range r.Others {
		if other.Commit.Commit != "" {
			ids = append(ids, other.Session)
		}
	}
	return ids
}

// ErasedOf returns the document of an erasure.
func ErasedOf(r coppice.Erased, dry bool) Erased {
	out := Erased{
		Session: r.Session, Entries: list(r.Entries), States: r.States, Docs: r.Docs, Already: r.Already,
		Commit: r.Commit.Commit, Written: len(r.Written), Removed: len(r.Removed), Bytes: r.Bytes, Images: r.Images,
		DryRun: dry,
		Trash:  []string{}, IO: r.IO,
	}
	if dry { // the commits are not stored
		out.Commit = ""
	}
	if r.OriginalBefore != r.OriginalAfter {
		out.Original = &Replaced{r.OriginalBefore, r.OriginalAfter}
	}
	out.Others = convert(r.Others, func(o coppice.Erased) Relative {
		out.Written += len(o.Written)
		out.Removed += len(o.Removed)
		out.Bytes += o.Bytes
		out.Images += o.Images
		one := Relative{Session: o.Session, Entries: list(o.Entries), States: o.States, Docs: o.Docs}
		if !dry {
			one.Commit = o.Commit.Commit
		}
		return one
	})
	return out
}

// Proven is what a search for a text in all objects found.
type Proven struct {
	Objects int        `json:"objects" doc:"number of objects that were read"`
	Bytes   int64      `json:"bytes" doc:"number of bytes that were read"`
	Found   []string   `json:"found" doc:"keys of those that have the text"`
	Files   []string   `json:"files" doc:"files of this machine that have it: search index, list, trash"`
	IO      backend.IO `json:"io" doc:"requests to the backend"`
}
