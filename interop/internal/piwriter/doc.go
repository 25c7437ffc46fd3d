// Package piwriter writes sessions as files of pi and of programs whose files are like pi's.
//
// What it guarantees of the ids and parents that it writes: every id is written once; every parent is
// in the file; there are no circles. Of several entries with one id the last keeps it, as everywhere in
// this module; the others get an id of their own. A parent that is missing, and a circle where it is
// cut, become null. The last line leads to the head. Commits of a session are left out; what hangs on
// one hangs on its parent.
//
// WriteFile and AppendEntries write the tree and ask a Target what each entry becomes. A Program is a
// Target of the pi family: a line that the program loads is written byte for byte. An entry of a type
// that it does not have becomes an entry of type "custom" whose data is the original entry (customType
// "coppice.entry"; a program that has the type gets it back), or a custom message. A missing field, or
// one of another type, is put right.
//
// Messages turns a message in any provider's shape (pi's, omp's, Anthropic's, OpenAI's chat completions
// and responses, Gemini's, Bedrock's) into messages of pi. What pi has no message for becomes a custom
// message with the text of it, the original in its details.
//
// A Preparer changes entries before a Target sees them, where it would see too little: it takes the
// names of tools from the calls on the way to a result, names documents and recordings instead of
// writing their bytes as text, and counts stubs and images of which only a reference is there.
//
// Bounds (I15): the sequence is walked twice; about 200 bytes an entry are held, and one entry's lines.
// Below the first call of a tool it is about 150 bytes more, and each call's id and name; 4,096 turns
// with calls are looked at for the name of one.
package piwriter
