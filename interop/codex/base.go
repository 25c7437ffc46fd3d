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

// maxBases bounds the number of files from which a session's history is collected.
const maxBases = 16

// part is one of the files that hold a session's history: its own file, or a base, the file of the session that it was
// forked from without a copy of the history.
type part struct {
	name    string // path for the source
	depth   int    // 0 = the session's own file, 1 = its base, 2 = the base's base, ...
	start   uint64 // the ordinal of its first line
	ordinal uint64 // first ordinal that is not part of the fork; math.MaxUint64 = unknown
	size    int64  // unpacked bytes of the file that are part of the fork; math.MaxInt64 = unknown
	in      *rolloutStream
	left    io.LimitedReader
}

// trace follows history_base from file to file and returns the bases, the oldest one last. If a base cannot be found,
// it adds a diagnostic and returns the bases found so far.
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

// find looks for the file of a base and returns the history_base of that file.
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

// locate finds a thread's file by the end of its name. It searches the session's own folder, the folders of the days on
// which the thread can have begun, and the folder of archived sessions. The day comes from the thread's UUID of version
// 7; the time zone is unknown. Relative paths differ if the session itself is archived.
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

// baseOf returns the history_base in the first line of a file, or nil.
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

// nextFile opens the next file: the oldest base first, the session's own file last.
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

// isBeyondFork reports whether a line of a base comes after the fork. If a line has no ordinal, its position is
// counted.
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

// leave continues with the next file. why is the reason why the base is left before its end; nil if it is not.
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
