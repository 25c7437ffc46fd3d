// Package piwriter writes sessions as files of pi and of programs with similar files.
//
// Guarantees for IDs and parents: every ID is written once; every parent is in the file; there are no cycles. If
// several entries have one ID, the last keeps it, as everywhere in this module; the others get new IDs. A missing
// parent becomes null, and so does one that closes a cycle. The last line moves the program to the head. Commit records
// of a session are dropped; their children become children of their parents.
//
// WriteFile and AppendEntries write the tree, and a Target converts each entry. A Program is a Target of the pi family:
// a line that the program loads is written unchanged. An entry of a type that the program does not have becomes an
// entry of type "custom" with the original as data (customType "coppice.entry"; a program that has the type gets it
// back), or a custom message. A field that is missing or of a wrong type is corrected.
//
// Messages converts a message in the shape of any provider (pi, omp, Anthropic, OpenAI's chat completions and
// responses, Gemini, Bedrock) to messages of pi. A message without an equivalent becomes a custom message with its
// text, and the original in its details.
//
// A Preparer changes entries before a Target converts them one by one: it adds the names of tools to results, from the
// calls above them; it replaces documents and recordings by a text that names them; and it counts stubs, and images of
// which only a reference exists.
//
// Bounds (I15): two passes over the entries; about 200 bytes per entry, and one entry's lines. Below the first tool
// call about 150 bytes more per entry, and each call's ID and name; the search for the name of a call covers 4,096
// turns with calls.
package piwriter
