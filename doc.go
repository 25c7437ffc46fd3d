// Package coppice is a session store and checkpointer for AI agents: it stores the whole conversation
// as a tree of messages, and the agent's exact state at every turn.
//
// Guarantees:
//
//   - What Commit acknowledged is in the history of every later head, on every host, after kill -9,
//     power loss, a full disk or a lost answer. Messages and state commit together.
//   - Two writers never overwrite each other. The loser gets an error, and can keep its turn as a branch.
//   - Open costs one object read on a store such as S3, one file and a bounded log tail on disk,
//     whatever the length of the history.
//   - Any commit can be read and restored exactly: state, context, head. What was amended since reads as it did then,
//     and is restored as amended: Rollback takes no amendment back. After a Repair that reports lost states, those
//     commits have the state of the commit before them.
//
// Rules that hold everywhere:
//
//   - A method with a context may do I/O; one without never does, except Close.
//   - A handle (Session) is one writer. All methods are safe for concurrent use. Two handles on one
//     session, even in one process, are two writers, and their commits may conflict.
//   - The conversation is read-your-writes: Context, Tree, Path and Entries hold what this handle
//     appended, committed or not. State, Head().Seq, Head().Commit, At and Log move only when a commit
//     is acknowledged, and so does all that other handles see.
//   - A handle writes one thing at a time: callers of one handle wait for each other, in order of arrival.
//   - A commit that returns nil has stored everything that was appended to the handle before the call, unless the
//     handle has DeferUntilAssistant and the receipt Seq 0. One that is not stored leaves the handle as it was: State,
//     and what was appended (the buffer). The turn's own entries are the caller's. Only after ErrCommitUnknown the
//     handle keeps the request: Settle finds out whether it is stored.
//   - A turn is made on the commit that the handle shows, or on its Base. If another writer has changed branch, head or
//     document since, it is ErrConflict: commit it again with KeepBoth, which stores it as a branch, or call Reload.
//   - Several callers of a handle commit turns that carry their entries (Turn.Entries) and name their Base.
//   - Labels, titles, metadata and amendments conflict with nothing: they are made on the newest state.
//   - Partial output (Session.Partial) is in memory: no entry, no commit, and in no context.
//   - A turn with a key is applied once, whichever host sends it again: the last 1,024 keys are remembered.
//   - A cancelled context decides for its own caller only.
//   - Nothing is written by Open, Create, Append or any read, and nothing by Close of a handle
//     that committed nothing. A new session exists from its first commit.
//   - Messages are the provider's own JSON objects, kept byte for byte. State is any value that
//     encoding/json takes; nil means unchanged, json.RawMessage("null") clears.
//   - Text is UTF-8. Other bytes are refused before anything is written (codec.ErrText, with the name of the text and
//     the offset). Those that earlier releases stored stay, and are read as U+FFFD.
//   - nil options are the defaults. Iterators yield an error last and once.
//
// A store is opened by URL; the program imports the driver:
//
//	import _ "github.com/coppice-go/coppice/backend/local"
package coppice
