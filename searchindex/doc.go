// Package searchindex keeps a full-text index of a store, in a SQLite file with FTS5. It finds typed prompts, newest
// first, and the content of all sessions, ranked.
//
// The store is authoritative, and never the index. Guarantees:
//
//   - The index can be rebuilt from the store at any time, with the same result as step by step.
//   - A missing or damaged index, or one of another version, is detected and rebuilt.
//   - Several processes may use one file at once.
//   - A search finds exactly the entries that a scan of all entries would find (see Query.Find), as far as Update
//     has read: at most MaxText bytes per entry, of commits before the update.
//
// No turn waits for the index: Update reads new entries before a search.
//
// The index covers all branches. It contains the text of transcripts: only the file's owner can read it. Text that was
// deleted from the store stays in it until Erase or the next Update, which leave no byte of it.
package searchindex
