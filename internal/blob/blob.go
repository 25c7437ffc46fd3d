// Package blob moves images out of transcript lines and back. Externalise and Internalise are a byte-exact bijection
// for every line. A session therefore stores the decoded bytes of an image once, under their SHA-256, however many
// lines contain it.
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

// minText is the minimum length of the base64 text of an image that is stored outside its line.
const minText = 32<<10 + 1

// A reference replaces the base64 text:
//
//	coppice-blob:sha256:<64 hex digits>:<bytes>
//
// Text that already has the form of a reference is escaped, so that the mapping between lines and stored lines is one
// to one.
const (
	mark   = "coppice-blob:"
	escape = mark + "=:"
	refTo  = mark + "sha256:"
)

// Blob is image data that is stored outside its line: the decoded bytes and their SHA-256, 64 lower-case hex digits.
type Blob struct {
	Sum  string
	Data []byte
}

// Ref names a blob that a stored line refers to, and its length in bytes.
type Ref struct {
	Sum  string
	Size int64
}

// Externalise returns the line as it is stored, and the blobs that it refers to, each once. A blob is made from base64
// text over 32 KiB in one of three places: a field "data" of an object of type image or base64, a field "data" of an
// object with a MIME type, or a data: URL. Text stays in the line if it is not an image, or if encoding its decoded
// bytes does not return the same text. For every line, Internalise of the result of Externalise is that line. A line
// without blobs is returned itself, not copied.
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

// decodeExactly decodes base64 text if encoding the result returns the same text.
func decodeExactly(b64 []byte) ([]byte, bool) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(b64)))
	n, err := base64.StdEncoding.Decode(data, b64)
	if err != nil || base64.StdEncoding.EncodedLen(n) != len(b64) {
		return nil, false
	}
	data = data[:n]
	// Compared in pieces: a multiple of three bytes can be encoded independently.
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

// parseRef reads a reference at the start of p. It returns the blob and the length of the reference; 0 = no reference.
func parseRef(p []byte) (ref Ref, n int) {
	const digits = len(refTo) + 2*sha256.Size + 1
	if len(p) <= digits || string(p[:len(refTo)]) != refTo || p[digits-1] != ':' {
		return Ref{}, 0
	}
	sum := p[len(refTo) : digits-1]
	if len(bytes.Trim(sum, "0123456789abcdef")) > 0 {
		return Ref{}, 0
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

// Refs returns the blobs that a stored line refers to, each once, in the order of their first reference.
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

// Internalise returns the line from which Externalise made stored. get returns the bytes of a blob by its sum. missing
// lists the blobs that get does not have or that have another length than the reference; their references stay in the
// line. A line without references is returned itself, not copied.
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
		case n == 0: // not written by Externalise
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
