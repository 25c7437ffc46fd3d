package api

import (
	"encoding/json"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/snapshot"
)

// Session is a session in a list.
type Session struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	First    string    `json:"first,omitempty" doc:"one line of the first prompt"`
	Cwd      string    `json:"cwd" doc:"the working directory"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated" doc:"the time of the newest activity"`
	Entries  uint64    `json:"entries" doc:"number of entries, commits not counted"`
	Bytes    int64     `json:"bytes" doc:"size of the raw transcript"`
	Seq      uint64    `json:"seq" doc:"number of the newest commit, from 0"`
	Head     *string   `json:"head" doc:"the entry from which the next one grows; null: the next one is a root"`
	Branch   string    `json:"branch"`
	Status   string    `json:"status,omitempty" doc:"asked, calling, working, answered, failed or aborted"`
	Parent   string    `json:"parent,omitempty" doc:"the session that started this one"`
	Preview  string    `json:"preview" doc:"one line of the newest message"`
	Internal bool      `json:"internal,omitempty" doc:"an agent started it for its own purposes"`
	Damaged  bool      `json:"damaged,omitempty" doc:"it lost commits (missing), or only id and updated are known"`
	Relation string    `json:"relation,omitempty" doc:"what it is to its parent: fork, agent, or a word of its creator"`

	Meta map[string]string          `json:"meta,omitempty" doc:"metadata, as it was set"`
	Docs map[string]json.RawMessage `json:"docs,omitempty" doc:"in a list over HTTP: the documents that it asks for"`

	Missing uint64 `json:"missing,omitempty" doc:"number of the newest commit that was made and is lost"`
	Cause   string `json:"cause,omitempty" doc:"of a damaged session: why it cannot be read"`
}

// SessionOf returns the element of a list for a summary.
func SessionOf(s checkpoint.Summary) Session {
	return Session{
		ID: s.ID, Title: s.Title, First: s.First, Cwd: s.Cwd, Created: s.Created, Updated: s.Updated,
		Entries: s.Entries, Bytes: s.Bytes, Seq: s.Seq, Head: null(s.Entry), Branch: s.Branch, Status: s.Status,
		Parent: s.Parent, Preview: s.Preview, Internal: s.Internal, Damaged: Damaged(s), Relation: s.Relation,
		Meta: s.Meta, Missing: s.Missing, Cause: oneLine(s.Cause),
	}
}

// Damaged reports whether a session cannot be read, or lost commits.
func Damaged(s checkpoint.Summary) bool { return s.Commit == "" || s.Missing > 0 }

// Created is the answer to the creation of a session.
type Created struct {
	Session string `json:"session" doc:"its id"`
}

// Deleted is the answer to the deletion of a session.
type Deleted struct {
	Deleted bool   `json:"deleted"`
	Session string `json:"session"`
	Trash   string `json:"trash,omitempty" doc:"the item that was created in the trash"`

	Children []string `json:"children,omitempty" doc:"sessions that were deleted with it; only over HTTP"`

	Purged *Purged `json:"purged,omitempty" doc:"what else was removed, with purge"`
	Copies *Copies `json:"copies,omitempty" doc:"what has entries of it and stays, with purge"`
}

// Purged is what the machine kept of a session apart from its store and the search index, and was removed.
type Purged struct {
	Pin    bool     `json:"pin" doc:"it was pinned"`
	Crumbs int      `json:"crumbs" doc:"terminals that remembered it"`
	Trash  []string `json:"trash" doc:"names of items of the trash"`
}

// Copies are what still has entries of a session.
type Copies struct {
	Sessions []string `json:"sessions" doc:"forks and other imports"`
	Trash    []string `json:"trash" doc:"items of other sessions, or of other stores"`
}

// Committed is the answer to a commit of entries.
type Committed struct {
	Entries  []string   `json:"entries" doc:"ids of the entries that were stored, in their order"`
	Known    []string   `json:"known,omitempty" doc:"of these, those that the session had before"`
	Seq      uint64     `json:"seq" doc:"number of the commit that contains them"`
	Commit   string     `json:"commit" doc:"id of that commit"`
	Head     *string    `json:"head" doc:"the entry from which the next one grows that is made on this commit"`
	Branch   string     `json:"branch" doc:"the branch of that head"`
	Kept     string     `json:"kept,omitempty" doc:"the branch of a commit that lost to another writer"`
	Left     string     `json:"left,omitempty" doc:"the branch of the line that a commit from an earlier entry left"`
	Repeated bool       `json:"repeated,omitempty" doc:"a commit with this key existed, and nothing was stored"`
	Created  bool       `json:"created,omitempty" doc:"the commit created the session; only over HTTP"`
	Warnings []string   `json:"warnings,omitempty" doc:"soft limits that were passed"`
	IO       backend.IO `json:"io" doc:"requests to the backend"`
}

// CommittedOf returns the answer to a commit of which entries are the ids of what was stored now.
func CommittedOf(r coppice.Receipt, entries []string) Committed {
	c := Committed{
		Entries: list(entries), Known: r.Known, Seq: r.Seq, Commit: r.Commit, Head: null(r.Entry), Branch: r.Branch,
		Kept: r.Kept, Repeated: r.Repeated, Warnings: r.Warnings,
	}
	if !r.Behind { // it is no turn that lost
		c.Kept, c.Left = "", r.Kept
	}
	return c
}

// Moved is the answer to a commit that moves the head, or that is about the session itself.
type Moved struct {
	Head   *string `json:"head" doc:"the entry from which the next one grows; null: the next one is a root"`
	Branch string  `json:"branch"`
	Seq    uint64  `json:"seq" doc:"number of the commit; of the newest one if nothing was committed"`
	Kept   string  `json:"kept,omitempty" doc:"the branch that names the line that was left, where none did"`

	Repeated bool `json:"repeated,omitempty" doc:"the key was known: this is the first answer, and nothing was done"`
}

// MovedOf returns the answer of a receipt.
func MovedOf(r coppice.Receipt) Moved {
	return Moved{Head: null(r.Entry), Branch: r.Branch, Seq: r.Seq, Kept: r.Kept, Repeated: r.Repeated}
}

// Stayed returns the answer of a receipt without the branch that was kept, for documents that do not have the field.
func Stayed(r coppice.Receipt) Moved {
	m := MovedOf(r)
	m.Kept = ""
	return m
}

// Navigated is the answer to a move to an entry, or to before a user message.
type Navigated struct {
	Moved
	Text    *string `json:"text" doc:"text of the user message that was selected, to be edited and sent again"`
	Summary string  `json:"summary,omitempty" doc:"id of the entry that summarizes the path that was left"`
	Already bool    `json:"already,omitempty" doc:"the head was there, and nothing was committed"`
}

// NavigatedOf returns the answer of a navigation.
func NavigatedOf(m manager.Moved) Navigated {
	return Navigated{Moved: MovedOf(m.Receipt), Text: null(m.Text), Summary: m.Summary, Already: m.Already}
}

// Rollback is the answer to a rollback. Kept is the branch that keeps the path that was left.
type Rollback struct {
	Moved
	State json.RawMessage `json:"state" doc:"the state that was restored; null if it was never set"`
}

// RollbackOf returns the answer of a rollback to a state.
func RollbackOf(r coppice.Receipt, state json.RawMessage) Rollback {
	return Rollback{MovedOf(r), nullJSON(state)}
}

// Compacted is the answer to a compaction.
type Compacted struct {
	Moved
	Entry     string  `json:"entry" doc:"id of the compaction entry"`
	FirstKept *string `json:"firstKept" doc:"the first entry that is kept; null: none is"`
	Tokens    int     `json:"tokensBefore" doc:"tokens of the context before, an estimate if no usage reports them"`
	Replaced  int     `json:"replaced" doc:"number of entries that the summary replaces"`
}

// CompactedOf returns the answer of a compaction.
func CompactedOf(c manager.Compacted) Compacted {
	return Compacted{Stayed(c.Receipt), c.ID, null(c.FirstKept), c.TokensBefore, c.Replaced}
}

// Fork is the answer to a fork.
type Fork struct {
	Session string  `json:"session" doc:"id of the new session"`
	Text    *string `json:"text,omitempty" doc:"text of the message before which the new session ends"`
}

// Commit is a commit in the log.
type Commit struct {
	Seq      uint64    `json:"seq" doc:"number of the commit; 0 is the creation"`
	Commit   string    `json:"commit" doc:"its id"`
	Reason   string    `json:"reason"`
	Head     *string   `json:"head" doc:"the entry from which the next one grew"`
	Branch   string    `json:"branch"`
	Time     time.Time `json:"time"`
	Entries  int       `json:"entries" doc:"number of entries that it made durable"`
	Snapshot *string   `json:"snapshot" doc:"snapshot that was taken of the state before the commit"`
	Writer   string    `json:"writer"`
	Epoch    uint64    `json:"epoch"`
	Key      string    `json:"key,omitempty" doc:"idempotency key"`
	Kept     string    `json:"kept,omitempty" doc:"the branch that was kept"`

	StateLost bool `json:"stateLost,omitempty" doc:"its state was lost, and no repair brought it back"`
}

// CommitOf returns the element of the log for a commit.
func CommitOf(c checkpoint.Commit) Commit {
	return Commit{
		c.Seq, c.Commit, c.Reason, null(c.Entry), c.Branch, c.Time, c.Entries, null(c.Snapshot), c.Writer, c.Epoch,
		c.Key, c.Kept, c.StateLost,
	}
}

// Snapshot is a snapshot of the state of a commit.
type Snapshot struct {
	ID     string    `json:"id"`
	Seq    uint64    `json:"seq"`
	Tag    string    `json:"tag"`
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	Reason string    `json:"reason" doc:"that of the commit"`
	Commit string    `json:"commit"`
	Only   bool      `json:"only,omitempty" doc:"because of damage, no other copy of the state exists"`
}

// SnapshotOf returns the document of a snapshot.
func SnapshotOf(s snapshot.Info) Snapshot {
	return Snapshot{s.ID, s.Seq, s.Tag, s.Time, s.Bytes, s.Reason, s.Commit, s.Only}
}

// SnapshotsOf returns the documents of a list, not nil.
func SnapshotsOf(in []snapshot.Info) []Snapshot { return convert(in, SnapshotOf) }

// Label is a label in force.
type Label struct {
	Entry string    `json:"entry"`
	Label string    `json:"label" doc:"the complete text"`
	Time  time.Time `json:"time" doc:"when it was set"`
}

// LabelsOf returns the documents of a list, not nil.
func LabelsOf(in []manager.Label) []Label {
	return convert(in, func(l manager.Label) Label { return Label{l.Entry, l.Text, l.Time} })
}

// Seconds returns the age of an answer in whole seconds, rounded up.
func Seconds(age time.Duration) int { return int((age + time.Second - 1) / time.Second) }
