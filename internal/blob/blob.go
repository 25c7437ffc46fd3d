// Package blob takes images out of transcript lines and puts them back: Externalise and Internalise are a
// bijection, to the byte, whatever the line holds. So a session stores the decoded bytes of an image once,
// under their SHA-256, however often its lines show it.
//
// The package is pure; its functions are safe for concurrent use.
package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
)

// minText is the length of base64 text from which on image data leaves its line.
const minText = 32<<10 + 1

// A reference is where the base64 text was:
//
//	coppice-blob:sha256:<64 hex digits>:<bytes>
//
// and text that looks like one already is escaped, so that stored lines and lines are one to one.
const (
	mark   = "coppice-blob:"
	escape = mark + "=:"
	refTo  = mark + "sha256:"
)

// Blob is image data that left its line: the decoded bytes and their SHA-256, 64 lower-case hex digits.
type Blob struct {
	Sum  string
	Data []byte
}

// Ref names a blob that a stored line refers to, and its length in bytes.
type Ref struct {
	Sum  string
	Size int64
}

// Externalise returns the line as it is stored, and the blobs that it refers to, each once. Blobs are made of base64
// text over 32 KiB: "data" in an object of type image or base64, or beside a MIME type, and data: URLs.
// Text whose decoded bytes would not give the same text again stays where it is, and so does everything
// that is no image. Internalise is the inverse: for every line, Internalise of what Externalise gave is
// that line. A line that needs nothing comes back itself, not copied.
func Externalise(line []byte) (stored []byte, blobs []Blob) {
	if bytes.Contains(line, []byte(mark)) {
		line = bytes.ReplaceAll(line, []byte(mark), []byte(escape))
	}
	if len(line) < minText {
		return line, nil
	}
	done := 0
	seen := map[string]bool{}
	for _, s := range findImages(line) {
		data, ok := decodeExactly(line[s.from:s.to])
		if !ok {
			continue
		}
		sum := sha256.Sum256(data)
		b := Blob{Sum: hex.EncodeToString(sum[:]), Data: data}
		if !seen[b.Sum] {
			seen[b.Sum] = true
			blobs = append(blobs, b)
		}
		stored = append(stored, line[done:s.from]...)
		stored = append(append(append(stored, refTo...), b.Sum...), ':')
		stored = strconv.AppendInt(stored, int64(len(data)), 10)
		done = s.to
	}
	if done == 0 {
		return line, nil
	}
	return append(stored, line[done:]...), blobs
}

// decodeExactly decodes base64 that encodes to the same text again.
func decodeExactly(b64 []byte) ([]byte, bool) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(b64)))
	n, err := base64.StdEncoding.Decode(data, b64)
	if err != nil || base64.StdEncoding.EncodedLen(n) != len(b64) {
		return nil, false
	}
	data = data[:n]
	// Compared piece by piece: a multiple of three bytes encodes by itself.
	const piece = 3 << 10
	var buf [4 << 10]byte
	for from := 0; from < n; from += piece {
		part := data[from:min(n, from+piece)]
		base64.StdEncoding.Encode(buf[:], part)
		size := base64.StdEncoding.EncodedLen(len(part))
		if !bytes.Equal(buf[:size], b64[from/3*4:from/3*4+size]) {
			return nil, false
		}
	}
	return data, true
}

// parseRef reads a reference at the start of p: the blob, and the bytes that it takes; 0 = none.
func parseRef(p []byte) (ref Ref, n int) {
	const digits = len(refTo) + 2*sha256.Size + 1
	if len(p) <= digits || string(p[:len(refTo)]) != refTo || p[digits-1] != ':' {
		return Ref{}, 0
	}
	sum := p[len(refTo) : digits-1]
	for _, c := range sum {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Ref{}, 0
		}
	}
	n = digits
	for n < len(p) && '0' <= p[n] && p[n] <= '9' {
		n++
	}
	size, err := strconv.ParseInt(string(p[digits:n]), 10, 64)
	if err != nil {
		return Ref{}, 0
	}
	return Ref{Sum: string(sum), Size: size}, n
}

// Refs returns the blobs that a stored line refers to, each once, in their order.
func Refs(stored []byte) []Ref {
	var refs []Ref
	seen := map[Ref]bool{}
	for {
		i := bytes.Index(stored, []byte(refTo))
		if i < 0 {
			return refs
		}
		stored = stored[i:]
		ref, n := parseRef(stored)
		if n > 0 && !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
		stored = stored[max(n, len(refTo)):]
	}
}

// Internalise returns the line of which Externalise made stored. get returns a blob's bytes by its sum; blobs
// that it does not have, or whose length is not the one that was stored, are named in missing, and their
// references stay in the line. A line without references comes back itself, not copied.
func Internalise(stored []byte, get func(sum string) ([]byte, bool)) (line []byte, missing []string) {
	next := bytes.Index(stored, []byte(mark))
	if next < 0 {
		return stored, nil
	}
	seen := map[string]bool{}
	for ; next >= 0; next = bytes.Index(stored, []byte(mark)) {
		line = append(line, stored[:next]...)
		stored = stored[next:]
		if bytes.HasPrefix(stored, []byte(escape)) {
			line = append(line, mark...)
			stored = stored[len(escape):]
			continue
		}
		ref, n := parseRef(stored)
		data, ok := []byte(nil), false
		if n > 0 {
			data, ok = get(ref.Sum)
		}
		switch {
		case n == 0: // nothing that we wrote
			n = len(mark)
			line = append(line, stored[:n]...)
		case ok && int64(len(data)) == ref.Size:
			line = base64.StdEncoding.AppendEncode(line, data)
		default:
			if !seen[ref.Sum] {
				seen[ref.Sum] = true
				missing = append(missing, ref.Sum)
			}
			line = append(line, stored[:n]...)
		}
		stored = stored[n:]
	}
	return append(line, stored...), missing
}
