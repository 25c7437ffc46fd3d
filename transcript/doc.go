// Package transcript holds what a session's transcript is made of: its lines and entries, the tree that
// they form, and the context for a model that a path through the tree forms.
//
// What it guarantees:
//
//   - Lines are kept byte for byte: fields, types and numbers that no one knows included. Only the head of
//     a line is read (type, id, parentId, timestamp); bodies are decoded on demand.
//   - What is called JSON here is what encoding/json calls JSON, up to 512 levels deep; where a field
//     occurs twice the last one counts.
//   - Nothing hangs and nothing is lost in silence. Missing parents, circles, double ids, bad lines, calls
//     without results are each cut or kept by a written rule and reported as a Diagnostic. Walks are
//     iterative; lists of diagnostics, depths and previews are bounded (I15).
//
// A line, in pi's session format version 3, is one JSON object:
//
//	{"type":"message","id":"..","parentId":"..","timestamp":"2026-01-02T15:04:05.000Z","message":{..}}
//
// Use: ParseLine reads a line's head, Draft.Line makes a line. BuildContext turns a path into messages by
// the rules of a Profile; a WorkingContext does so for a path that grows, within a bound of bytes. Inspect finds
// role, text, calls and results in any provider's message.
//
// A Tree comes from a session, or from a TreeBuilder, which gathers the rows that RowOf makes of lines. It holds
// ids, parents and types in columns over packed skeletons. Where parents are not resolved yet, as in a file that
// is imported, ResolveParents resolves them over the whole file. Package view keeps what a selector of entries shows
// of a tree. Session files of other programs are read by the packages of interop.
//
// The package is pure: no files, no clock, no randomness but what the caller hands in. Functions and
// methods are safe for concurrent use unless their comment states otherwise.
package transcript
