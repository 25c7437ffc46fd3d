package damage

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/layout"
)

// remains is the part of a session's bytes that still exists in some object, whatever the program makes of it.
type remains struct {
	lines   map[string]bool // stored lines, without their newline
	commits map[uint64]bool // commits whose document an intact checkpoint or snapshot holds
	blobs   map[string]bool // images by hex SHA-256
	file    bool            // the imported bytes, all of them
	exists  bool            // a checkpoint or a segment exists
	rules   bool            // some object has the rules of the context
}

// remainsOf reads the remaining data. hurt are the objects after the damage; their content is known from the objects
// before it: an undamaged object has all of its content, a sealed segment that of its untouched frames, a plain segment
// its untouched lines.
func remainsOf(o *origin, hurt map[string][]byte) *remains {
	r := &remains{lines: map[string]bool{}, commits: map[uint64]bool{}, blobs: map[string]bool{}, file: o.file != nil}
	for key, p := range o.objects {
		if sessionOf(key) != sid {
			continue
		}
		q, there := hurt[key]
		class := classOf(key)
		if there && (class == "checkpoint" || class == "plain" || class == "sealed") {
			r.exists = true
		}
		same := there && bytes.Equal(p, q)
		switch class {
		case "plain":
			r.plain(q)
		case "sealed":
			r.sealed(p, q)
		case "checkpoint", "snapshot":
			if same {
				r.object(p)
			}
		case "blob":
			if same {
				r.blobs[key[strings.LastIndexByte(key, '/')+1:]] = true
			}
		case "original", "parts":
			r.file = r.file && same
		}
	}
	if r.file {
		r.imported(o)
	}
	for _, l := range o.stored {
		r.rules = r.rules || l.commit && r.lines[l.raw] && strings.Contains(l.raw, `"base":`)
	}
	return r
}

// plain adds the lines of a plain segment: a damaged line never existed. After a duplicated line the last commit looks
// like a write that was never acknowledged.
func (r *remains) plain(q []byte) {
	lines := bytes.Split(bytes.TrimSuffix(q, []byte("\n")), []byte("\n"))
	last, twice := len(lines)-1, false
	for ; last > 0 && !bytes.Contains(lines[last-1], []byte(`"coppice.commit"`)); last-- {
		twice = twice || last < len(lines)-1 && bytes.Equal(lines[last-1], lines[last])
	}
	twice = twice || last > 1 && bytes.Equal(lines[last-2], lines[last-1])
	if twice {
		lines = lines[:last]
	}
	for _, line := range lines {
		r.lines[string(line)] = true
	}
}

// imported adds the entries of the import: the same file yields the same ones.
func (r *remains) imported(o *origin) {
	for _, l := range o.stored {
		if l.seq >= uint64(o.imported) {
			return
		}
		if l.commit {
			continue
		}
		r.lines[l.raw] = true
		for _, ref := range blob.Refs([]byte(l.raw)) {
			r.blobs[ref.Sum] = true
		}
	}
}

func (r *remains) sealed(p, q []byte) {
	idx, _, err := codec.DecodeSegmentIndex(p, int64(len(p)))
	if err != nil || idx == nil {
		return
	}
	for i := range idx.Frames() {
		off, n := idx.FrameRange(i)
		if off+n > int64(len(q)) || !bytes.Equal(p[off:off+n], q[off:off+n]) {
			continue
		}
		raw, _, err := idx.DecodeFrame(i, p[off:off+n])
		if err != nil {
			continue
		}
		for line := range bytes.SplitSeq(raw, []byte("\n")) {
			r.lines[string(line)] = true
		}
	}
}

// object adds a checkpoint or a snapshot.
func (r *remains) object(p []byte) {
	o, err := checkpoint.DecodeObject(p)
	if err != nil {
		return
	}
	r.commits[o.Summary.Seq], r.rules = true, true
	for _, line := range o.Tail.Lines {
		r.lines[string(line)] = true
	}
	for _, line := range o.Pool {
		r.lines[string(line)] = true // a line that was cut to its head never existed
	}
	for sum := range o.Blobs {
		r.blobs[sum] = true
	}
}

// newest returns the newest commit whose bytes survive; -1 = none does.
func (r *remains) newest(o *origin) int64 {
	best, seq, full := int64(-1), uint64(0), true
	for _, l := range o.stored {
		full = full && r.lines[l.raw]
		if !l.commit {
			continue
		}
		if full || r.commits[seq] {
			best = int64(seq)
		}
		seq, full = seq+1, true
	}
	return best
}

// documents returns the commits whose document survives: in an object, or by patches from a commit line with a whole
// document.
func (r *remains) documents(o *origin) map[uint64]bool {
	out := map[uint64]bool{}
	last := false
	for _, l := range o.stored {
		if !l.commit {
			continue
		}
		whole := o.truth.log[l.seq].Keyframe
		last = r.commits[l.seq] || r.lines[l.raw] && (whole || last)
		if last {
			out[l.seq] = true
		}
	}
	return out
}

// classOf returns the kind of an object.
func classOf(key string) string {
	_, rest, found := strings.Cut(key, "/")
	if strings.HasPrefix(key, layout.Checkpoints) {
		return "checkpoint"
	}
	if found && strings.HasPrefix(key, layout.Sessions) {
		_, rest, _ = strings.Cut(rest, "/")
		folder, name, _ := strings.Cut(rest, "/")
		switch folder + "/" {
		case layout.Transcript:
			if strings.HasSuffix(name, ".zst") {
				return "sealed"
			}
			return "plain"
		case layout.Index:
			return "index"
		case layout.IDs:
			return "ids"
		case layout.Snapshots:
			return "snapshot"
		case layout.Blobs:
			return "blob"
		case layout.Torn:
			return "torn"
		case layout.Originals:
			if strings.HasSuffix(name, ".parts") {
				return "parts"
			}
			return "original"
		}
	}
	return "store"
}

// sessionOf returns the session to which an object belongs; "" = the store.
func sessionOf(key string) string {
	folder, rest, _ := strings.Cut(key, "/")
	if folder+"/" != layout.Checkpoints && folder+"/" != layout.Sessions {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	id, _ := layout.Unescape(name)
	return id
}
