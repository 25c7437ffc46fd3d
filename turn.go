package coppice

import (
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// Turn is what a Commit saves beside the entries that were appended.
type Turn struct {
	State   any    // the agent's state; nil = unchanged, json.RawMessage("null") clears
	Manager any    // the conversation manager's own state; nil = unchanged
	Reason  string // default "turn"; own words: [a-z0-9.-]{1,32}
	Key     string // idempotency: a turn with a key that is known is not applied again; its receipt comes back
}

// Receipt says what a commit did.
type Receipt struct {
	checkpoint.Head          // Seq, Commit, Epoch, Entry, Branch
	Entries         int      // how many it made durable
	Kept            string   // the branch on which a losing turn (KeepBoth, Rebase) or an abandoned line (Rollback) now lives; "" = none
	Snapshot        string   // taken by the way; "" = none
	Warnings        []string // soft limits passed, with value and limit
	Bytes           int      // size of the checkpoint or of the append
	IO              backend.IO
}

// Change is one commit as Watch yields it, with the entries that it made durable.
type Change struct {
	Commit  checkpoint.Commit
	Entries []transcript.Entry
}

// BranchOptions of Session.Branch.
type BranchOptions struct {
	Name    string // names the new branch; "" = the head keeps the name of the line that it is on
	Summary string // adds a branch_summary entry of the line that is left
}
