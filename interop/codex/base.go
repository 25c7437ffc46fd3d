package codex

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// maxBases bounds the files that a session's beginning is spread over.
const maxBases = 16

// part is one of the files that hold a session's history: its own, and before it the beginning of another
// session's, of which it is a fork that copied nothing.
type part struct {
	name    string // as Source.Beside takes it
	depth   int    // 0 = the session's own, 1 = what that continues from, ...
	start   uint64 // the ordinal of its first line
	ordinal uint64 // the first one that is the fork's no more; math.MaxUint64 = not said
	size    int64  // bytes of the file, unpacked, that are the fork's; math.MaxInt64 = not said
	in      *rolloutStream
	left    io.LimitedReader
}

// trace follows history_base from file to file and returns what it leads to, the beginning of all last. Where it
// leads no further, that is said, and what there is is read.
func (r *Reader) trace() (chain []*part) {
	p := r.first
	if r.header.Made || p.Cut {
		return nil
	}
	from, where := rawjson.Field(p.Payload, "history_base"), ""
	seen := map[string]bool{r.header.ID: true}
	for depth := 1; ; depth++ {
		id := rawjson.Text(rawjson.Field(from, "thread_id"))
		if id == "" {
			return chain
		}
		b := &part{depth: depth, ordinal: math.MaxUint64, size: math.MaxInt64}
		next, err := r.find(b, id, from, seen)
		if err != nil {
			detail := fmt.Sprintf("%sits beginning stands in the file of thread %.80q, which is not read", where, id)
			if !errors.Is(err, fs.ErrNotExist) {
				detail += ": " + err.Error()
			}
			r.diag.Add("", uint64(p.At.Line), transcript.DiagNoted, detail)
			r.costs.before = true
			return chain
		}
		chain = append(chain, b)
		from, where, seen[id] = next, b.name+": ", true
	}
}

// find looks for the file of a base and returns what its session says of its own base.
func (r *Reader) find(b *part, id string, from []byte, seen map[string]bool) (next []byte, err error) {
	size, sizeErr := strconv.ParseInt(string(rawjson.Field(from, "end_byte_offset")), 10, 64)
	ordinal, ordinalErr := strconv.ParseUint(string(rawjson.Field(from, "end_ordinal_exclusive")), 10, 64)
	switch {
	case seen[id]:
		return nil, errors.New("it leads back to itself")
	case b.depth > maxBases:
		return nil, fmt.Errorf("more than %d files, one behind the other", maxBases)
	case sizeErr != nil && ordinalErr != nil || size < 0:
		return nil, errors.New("it is not said how much of it is meant")
	}
	if ordinalErr == nil {
		b.ordinal = ordinal
	}
	if sizeErr == nil {
		b.size = size
	}
	if b.name, err = r.locate(id); err != nil {
		return nil, err
	}
	if next, err = r.baseOf(b.name); err != nil {
		return nil, err
	}
	if n, err := strconv.ParseUint(string(rawjson.Field(next, "end_ordinal_exclusive")), 10, 64); err == nil {
		b.start = n
	}
	return next, nil
}

// locate finds a thread's file by the end of its name: in the session's own folder, in that of a day on which
// the thread can have begun, which a UUID of version 7 says but for the time zone, or among the archived ones. From
// the folder of those the one of a day lies elsewhere.
func (r *Reader) locate(id string) (name string, err error) {
	if r.src.List == nil || r.src.Beside == nil {
		return "", fs.ErrNotExist
	}
	u, err := uuid.Parse(id)
	if err != nil {
		return "", fs.ErrNotExist
	}
	dirs := []string{"."}
	if u.Version() == 7 {
		began := time.Unix(u.Time().UnixTime()).UTC()
		for _, days := range []string{"../../../", "../sessions/"} {
			for day := -1; day <= 1; day++ {
				dirs = append(dirs, days+began.AddDate(0, 0, day).Format("2006/01/02"))
			}
		}
	}
	dirs = append(dirs, "../../../../archived_sessions")
	for _, dir := range dirs {
		names, err := r.src.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, name := range names {
			plain := strings.TrimSuffix(name, ".zst")
			if path.Dir(name) == dir && strings.HasPrefix(path.Base(name), "rollout-") &&
				strings.HasSuffix(plain, "-"+id+".jsonl") {
				return name, nil
			}
		}
	}
	return "", fs.ErrNotExist
}

// baseOf returns the history_base in the first line of a file; nil = it has none.
func (r *Reader) baseOf(name string) (from []byte, err error) {
	in, err := r.openBase(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	s := newScanner(in)
	o, err := s.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l := readRolloutLine(o.Raw)
	if o.Part || l.Form != formEnvelope || string(l.Type) != `"session_meta"` {
		return nil, fmt.Errorf("%s does not begin with a session's line", name)
	}
	return append([]byte(nil), rawjson.Field(l.Payload, "history_base")...), nil
}

func (r *Reader) openBase(name string) (*rolloutStream, error) {
	return openRollout(interop.Source{Name: name, Open: func() (io.ReadCloser, error) { return r.src.Beside(name) }})
}

// nextFile opens the next file: a base, or at last the session's own.
func (r *Reader) nextFile() {
	if !r.traced {
		r.traced = true
		r.chain = r.trace()
	}
	r.typed = typedFilter{}
	if n := len(r.chain) - 1; n >= 0 {
		b := r.chain[n]
		r.chain = r.chain[:n]
		in, err := r.openBase(b.name)
		if err != nil {
			r.diag.Add("", 0, transcript.DiagNoted, fmt.Sprintf("%s is not read: %s", b.name, err))
			return
		}
		b.in, b.left = in, io.LimitedReader{R: in, N: b.size}
		r.from, r.feed = b, newPieceFeed(newScanner(&b.left), b.depth)
		return
	}
	r.from, r.feed = &part{ordinal: math.MaxUint64}, newPieceFeed(r.s, 0)
	if p := r.first; r.header.Made || p.Cut {
		r.hear(p)
	} else {
		r.typed.begin(p)
		r.custom(p.At, "session_meta", p.Raw)
	}
	r.first = nil
}

// isBeyondFork reports whether a line of a base is not the fork's any more. Lines without an ordinal are counted.
func (b *part) isBeyondFork(p *rolloutPiece) bool {
	if b.ordinal == math.MaxUint64 {
		return false
	}
	n, err := strconv.ParseUint(string(p.Ordinal), 10, 64)
	if err != nil {
		n = b.start + uint64(p.At.Line) - 1
	}
	return n >= b.ordinal
}

// leave continues from a base to the next file; why = why it is left before its end, nil = it is not.
func (r *Reader) leave(why error) {
	b := r.from
	r.flush("")
	r.feed.Close()
	r.feed = nil
	if b.size != math.MaxInt64 && b.left.N > 0 && why == nil {
		why = fmt.Errorf("it ends %d bytes before the place where the session goes on", b.left.N)
	}
	if errors.Is(why, errBeyond) {
		why = nil
	}
	if err := errors.Join(why, b.in.Close()); err != nil {
		r.diag.Add("", 0, transcript.DiagNoted, b.name+": "+err.Error())
	}
}

var errBeyond = errors.New("codex: the rest is not the fork's")
