// Package searchindex keeps a full-text index beside a store, in a file of SQLite with FTS5. It finds the prompts
// that were typed, newest first, and what was said in any session, ranked.
//
// The index is never the truth. It guarantees that
//
//   - it can be made anew from the store at any time, and is then what it would have become step by step;
//   - one that is missing, damaged or of another version is noticed and made anew, never trusted;
//   - several processes may use one file at once;
//   - it finds exactly what reading every entry would find (Query.Find on Said), as far as Update has read:
//     of one entry at most MaxText bytes, of the store what was committed before.
//
// No turn waits for it: what is new is read by Update, before a search.
//
// All branches are in it. It holds the words of transcripts: the file is readable by its owner alone, and
// what was deleted from the store is in it until Erase or the next Update, which leave no byte of it.
package searchindex
