package omp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

const refMark = "blob:sha256:"

// limits bounds the bytes read of blobs (I15).
type limits struct{ blob, line, file int64 }

var usual = limits{blob: 32 << 20, line: 48 << 20, file: 4 << 30}

// blobs resolves the references of one file.
type blobs struct {
	limits
	beside func(name string) (io.ReadCloser, error)
	folder string // folder of the last blob; tried first
	read   int64  // bytes of blobs so far
}

// folders are the possible places of a blob, relative to the session's folder: omp's own, and those of a copied session
// with its blobs.
var folders = [...]string{"../../blobs/", "../blobs/", "blobs/"}

// entry replaces the references in a line by images. A line without references is returned unchanged.
func (b *blobs) entry(l transcript.Line, say func(kind, detail string)) []byte {
	if !bytes.Contains(l.Raw, []byte(`"`+refMark)) {
		return l.Raw
	}
	var out []byte
	done, left := 0, min(b.line, b.file-b.read)
	for _, r := range findRefs(l.Raw) {
		text, err := b.resolve(l.Raw[r.from:r.to], r.url, left)
		if err != nil {
			say(DiagBlob, err.Error()+": it stays as it is")
			continue
		}
		left -= int64(len(text))
		b.read += int64(len(text))
		out = append(append(out, l.Raw[done:r.from]...), text...)
		done = r.to
	}
	if done == 0 {
		return l.Raw
	}
	return append(out, l.Raw[done:]...)
}

// DiagBlob is the kind of a diagnostic about an image whose blob is missing, damaged or too large, or whose
// reference is malformed.
const DiagBlob = "blob"

// resolve returns the data for a reference, as JSON without quotes.
func (b *blobs) resolve(ref []byte, url bool, left int64) ([]byte, error) {
	sum := ref[len(refMark):]
	if !validSum(sum) {
		return nil, fmt.Errorf("a malformed reference to a blob, %.100q", ref)
	}
	if !url {
		left = left / 4 * 3 // base64 is larger than the data
	}
	data, err := b.get(string(sum), left)
	if err != nil {
		return nil, fmt.Errorf("the reference to blob %s: %w", sum, err)
	}
	if !url {
		return base64.StdEncoding.AppendEncode(nil, data), nil
	}
	if !bytes.HasPrefix(data, []byte("data:")) {
		return nil, fmt.Errorf("the reference to blob %s: it is no data URL", sum)
	}
	text := rawjson.AppendString(nil, string(data))
	return text[1 : len(text)-1], nil
}

// validSum reports whether sum is 64 lower-case hex digits. A name made of it then stays in the blob folder.
func validSum(sum []byte) bool {
	return len(sum) == hex.EncodedLen(sha256.Size) && len(bytes.Trim(sum, "0123456789abcdef")) == 0
}

var (
	errMissing = errors.New("it is not there")
	errSize    = errors.New("it is over the limit for blobs")
	errSum     = errors.New("its content is not what its name says")
)

// get reads a blob of at most most bytes and compares it with its name, which is its checksum.
func (b *blobs) get(sum string, most int64) ([]byte, error) {
	if most = min(most, b.blob); most <= 0 {
		return nil, errSize
	}
	r, err := b.find(sum)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if int64(len(data)) > most {
		return nil, errSize
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, errSum
	}
	return data, nil
}

func (b *blobs) find(sum string) (io.ReadCloser, error) {
	if b.beside == nil {
		return nil, errMissing
	}
	if b.folder != "" {
		if r, err := b.beside(b.folder + sum); err == nil {
			return r, nil
		}
	}
	var odd error
	for _, folder := range folders {
		r, err := b.beside(folder + sum)
		switch {
		case err == nil:
			b.folder = folder
			return r, nil
		case !errors.Is(err, fs.ErrNotExist) && odd == nil:
			odd = err
		}
	}
	if odd != nil {
		return nil, odd
	}
	return nil, errMissing
}
