package damage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/layout"
)

// finding is a broken promise.
type finding struct{ rule, text string }

// judgement is the state of one trial.
type judgement struct {
	c    trial
	o    *origin
	left *remains
	hurt map[string][]byte
	hit  map[string]bool
	b    backend.Backend
	st   *coppice.Store
	s    int64 // the newest commit whose bytes survive; -1 = none
	docs map[uint64]bool
	// an object store has an earlier head, of this commit, and nothing proves that there was a later one; else -1
	headSeq int64
	told    int // number of losses that verify lists after the repair

	bad     []finding
	excused map[string]int // how often a rule did not apply, by the reason
}

func (j *judgement) broken(rule, format string, args ...any) {
	if !slices.ContainsFunc(j.bad, func(f finding) bool { return f.rule == rule }) {
		j.bad = append(j.bad, finding{rule, fmt.Sprintf(format, args...)})
	}
}

// Reasons for which a rule does not apply. Each is a figure in the suite's log.
const (
	// A disk may lose the end of an append that was never acknowledged. Damage of the newest commits looks the same if
	// nothing else refers to them, so the session then ends with the commit before them.
	looksTorn = "the end of the log looks like a write that was never acknowledged"
	// A session is its checkpoint and its segments: without them, the remaining objects belong to no session (DESIGN
	// 6.7).
	noSession = "neither checkpoint nor segment is left"
	// doc.go: a missing image becomes a diagnostic of the context, and its reference stays.
	imageGone = "an image is lost, the context says so"
	// The state is a chain of patches: a lost one takes all later ones with it.
	documentGone = "nothing that is left holds the newest commit's document"
	// On a disk the checkpoint is a cache, and a list shows its commit.
	listLags = "the list shows the commit of the checkpoint, and not that of the log"
	// The rules of a context are in the checkpoint, in snapshots and in the first commit line of each segment.
	rulesGone = "nothing that is left says by which rules the context is built"
	// An object store has one head: an earlier one is a valid earlier state. A snapshot of a later one proves the
	// damage.
	earlierHead = "the head of an object store is an earlier one"
	// The context contains the path to the head: a lost entry has a placeholder that no model sees.
	contextGone = "nothing that is left holds an entry of the context"
)

// earlierHead returns the commit of an earlier head that was restored on an object store; -1 = a snapshot is newer, or
// there is none.
func (j *judgement) earlierHead() int64 {
	key := layout.CheckpointKey(sid)
	o, err := checkpoint.DecodeObject(j.hurt[key])
	if err != nil || j.c.kind != "replace" || o.Summary.ID != sid || o.Summary.Seq == j.o.truth.head.Seq {
		return -1
	}
	for key, p := range j.hurt {
		is, err := checkpoint.DecodeObject(p)
		ours := sessionOf(key) == sid && classOf(key) == "snapshot" && err == nil && is.Summary.ID == sid
		if ours && is.Summary.Seq > o.Summary.Seq {
			return -1
		}
	}
	return int64(o.Summary.Seq)
}

func (j *judgement) excuse(reason string) { j.excused[reason]++ }

// try damages a session, and judges the program's behaviour.
func try(c trial, o *origin, dir string) (bad []finding, excused map[string]int, err error) {
	j := &judgement{c: c, o: o, excused: map[string]int{}}
	j.hurt, j.hit = c.apply(o)
	if maps.EqualFunc(j.hurt, o.objects, bytes.Equal) {
		return nil, nil, nil // a sector of zeros was zeroed
	}
	j.left = remainsOf(o, j.hurt)
	j.s, j.docs, j.headSeq = j.left.newest(o), j.left.documents(o), j.earlierHead()
	if j.headSeq >= 0 {
		j.excuse(earlierHead)
		j.s = min(j.s, j.headSeq)
	}
	if j.b, err = storeOf(c.kind, dir, j.hurt); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, j.b.Close()) }()
	if j.st, err = coppice.New(j.b, options("judge", 5)); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, j.st.Close()) }()
	j.before()
	if j.repair() {
		j.after()
	}
	return j.bad, j.excused, nil
}

// before judges reading of the damaged session, and that reading changes nothing.
func (j *judgement) before() {
	at := []uint64{uint64(j.c.harms[0].at) % (j.o.truth.head.Seq + 1)}
	is := look(j.st, sid, scope{at: at, contexts: true})
	quick, qerr := j.st.Verify(ctx, sid, false)
	deep, derr := j.st.Verify(ctx, sid, true)
	_, rerr := j.st.Repair(ctx, sid, true)
	if now, err := objects(j.b); err != nil || !same(now, j.hurt) {
		j.broken("reading writes", "what only reads changed the store (I14): %s, %v", differ(j.hurt, now), err)
	}
	if !j.left.exists {
		j.excuse(noSession)
		return
	}
	if is.listed == nil && is.listErr == nil {
		j.broken("not listed", "the list does not have the session")
	}
	if qerr != nil || derr != nil {
		j.broken("verify fails", "quick %v, deep %v", qerr, derr)
	}
	if rerr != nil {
		j.broken("dry run fails", "%v", rerr)
	}
	if n := len(damaged(quick)); n > 0 && len(damaged(deep)) == 0 {
		j.broken("quick finds more", "%d pieces of damage, deep none: %v", n, damaged(quick))
	}
	if wrong := j.reads(is, derr == nil && len(damaged(deep)) == 0); wrong != "" {
		j.broken("wrong read", "before the repair: %s", wrong)
	}
	switch {
	case is.fileErr == nil && j.o.file == nil && is.head.Seq < j.o.truth.head.Seq && bytes.HasPrefix(j.o.truth.file, is.file):
		j.excuse(looksTorn)
	case is.fileErr == nil && !bytes.Equal(is.file, j.o.truth.file):
		j.broken("wrong export", "%d bytes, no error, instead of %d", len(is.file), len(j.o.truth.file))
	case is.fileErr != nil && j.o.file != nil && j.left.file:
		j.broken("no export", "the imported bytes are intact: %v", is.fileErr)
	case !typed(is.fileErr):
		j.broken("untyped", "export: %v", is.fileErr)
	}
}

// reads compares the content that a damaged session shows with the original; clean = a deep verify found no damage.
func (j *judgement) reads(is *sight, clean bool) string {
	for what, err := range map[string]error{
		"open": is.openErr, "list": is.listErr, "context": is.ctxErr, "entries": is.readErr, "log": is.logErr, "state": is.state.err,
	} {
		if !typed(err) {
			return fmt.Sprintf("%s fails with %v", what, err)
		}
		if err != nil && clean {
			j.broken("verify misses", "%s fails with %v, a deep verify finds nothing", what, err)
		}
	}
	if is.openErr != nil {
		return ""
	}
	seq, truth := is.head.Seq, j.o.truth
	if seq < truth.head.Seq && int64(seq) != j.headSeq {
		if clean && (j.c.kind == "replace" || int64(seq) < j.s) {
			return fmt.Sprintf("commit %d is shown as the newest, not %d, and verify finds nothing", seq, j.s)
		}
		j.excuse(looksTorn)
	}
	want := truth.views[seq]
	switch {
	case seq > truth.head.Seq:
		return fmt.Sprintf("commit %d is shown, there were %d", seq, truth.head.Seq)
	case is.head != truth.log[seq].Head:
		return fmt.Sprintf("the head is %+v instead of %+v", is.head, truth.log[seq].Head)
	case is.state.err == nil && is.state.text != want.state:
		return fmt.Sprintf("the state is %s instead of %s", is.state.text, want.state)
	case is.ctxErr == nil:
		if wrong := sameMessages(is.context, want.context, is.gaps); wrong != "" {
			return "context: " + wrong
		}
	}
	if wrong := j.sameEntries(is, seq); wrong != "" {
		return wrong
	}
	for n, c := range is.log {
		if c != truth.log[n] {
			return fmt.Sprintf("commit %d is %+v instead of %+v", n, c, truth.log[n])
		}
	}
	for n, v := range is.views {
		switch was := truth.views[n]; {
		case !typed(v.err):
			return fmt.Sprintf("at commit %d: %v", n, v.err)
		case v.err != nil:
		case v.state != was.state:
			return fmt.Sprintf("at commit %d the state is %s instead of %s", n, v.state, was.state)
		default:
			if wrong := sameMessages(v.context, was.context, v.gaps); wrong != "" {
				return fmt.Sprintf("at commit %d: %s", n, wrong)
			}
		}
	}
	return ""
}

// sameEntries compares the entries up to a commit, as far as they were read.
func (j *judgement) sameEntries(is *sight, seq uint64) string {
	n := 0
	for _, l := range j.o.stored {
		if !l.commit && l.seq <= seq {
			n++
		}
	}
	if is.readErr == nil && len(is.entries) != n {
		return fmt.Sprintf("%d entries are read without an error, there are %d", len(is.entries), n)
	}
	for i, e := range is.entries {
		if i >= len(j.o.truth.entries) || e != j.o.truth.entries[i] {
			if strings.Contains(e.raw, reference) {
				j.excuse(imageGone)
				continue
			}
			return fmt.Sprintf("entry %d is %.200q instead of %.200q", i, e, j.o.truth.entries[min(i, len(j.o.truth.entries)-1)])
		}
	}
	return ""
}

// repair repairs the session, and reports whether there is one.
func (j *judgement) repair() bool {
	id := sid
	if j.c.whole {
		id = ""
	}
	first, err := j.st.Repair(ctx, id, false)
	switch {
	case err != nil && !j.left.exists && errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		j.broken("repair fails", "%v", err)
		return false
	case !j.left.exists:
		return false
	}
	repaired, err := objects(j.b)
	if err != nil {
		j.broken("store", "%v", err)
		return false
	}
	j.kept(repaired)
	deep, err := j.st.Verify(ctx, id, true)
	if bad := damaged(deep); err != nil || len(bad) > 0 {
		j.broken("does not converge", "after the repair verify --deep finds, %v:\n\t\t%s\n\t\tthe repair said:\n\t\t%s", err,
			strings.Join(bad, "\n\t\t"), strings.Join(problems(first), "\n\t\t"))
	}
	for _, p := range deep.Problems {
		if p.Session == sid && p.Kind() == "lost" && !strings.Contains(p.Error(), "the state") {
			j.told++
		}
	}
	second, err := j.st.Repair(ctx, id, false)
	now, oerr := objects(j.b)
	if err != nil || oerr != nil || !same(repaired, now) {
		j.broken("second repair", "%v, %v; it changed %s; it said\n\t\t%s", err, oerr, differ(repaired, now),
			strings.Join(problems(second), "\n\t\t"))
	}
	return true
}

// kept judges that no bytes were lost (I14), and that other sessions are unchanged.
func (j *judgement) kept(now map[string][]byte) {
	for key, p := range j.hurt {
		if sessionOf(key) != sid {
			if !bytes.Equal(now[key], p) {
				j.broken("another session", "%s was changed by the repair", key)
			}
			continue
		}
		intact := !j.hit[key] || key == layout.CheckpointKey(sid) && j.outdated(p)
		if intact && classOf(key) != "snapshot" && classOf(key) != "blob" {
			continue // intact data may change its form: a plain segment is sealed, a checkpoint is replaced
		}
		if q, ok := now[key]; ok && bytes.HasPrefix(q, p) {
			continue
		}
		if !held(now, key, p) {
			j.broken("bytes are gone", "%s: its %d bytes are in no object after the repair (I14)", key, len(p))
		}
	}
}

// outdated reports whether a checkpoint is an intact one that was replaced by a later one: on a disk it is a cache.
func (j *judgement) outdated(p []byte) bool {
	o, err := checkpoint.DecodeObject(p)
	return err == nil && o.Summary.ID == sid && (j.c.kind != "replace" || j.headSeq >= 0)
}

// held reports whether bytes are still in the objects of a store: whole, or their prefix under their name and the rest
// in torn/.
func held(now map[string][]byte, key string, p []byte) bool {
	n := common(now[key], p)
	if sealed, _, err := codec.DecodeSegment(now[key+".zst"], 1<<30); err == nil { // it was sealed since
		n = max(n, common(sealed, p))
	}
	for k, q := range now {
		if sessionOf(k) == sid && (bytes.Contains(q, p) || classOf(k) == "torn" && bytes.HasSuffix(q, p[n:])) {
			return true
		}
	}
	return false
}

// common returns the length of the common prefix of two objects.
func common(p, q []byte) (n int) {
	for n < len(p) && n < len(q) && p[n] == q[n] {
		n++
	}
	return n
}

// after judges the repaired session, and that it accepts commits.
func (j *judgement) after() {
	is := look(j.st, sid, scope{all: true})
	for what, err := range map[string]error{
		"open": is.openErr, "list": is.listErr, "context": is.ctxErr, "entries": is.readErr, "log": is.logErr, "state": is.state.err,
	} {
		if err != nil && !errors.Is(err, coppice.ErrStateLost) {
			j.broken("unreadable", "after the repair: %s: %v", what, err)
			return
		}
	}
	switch {
	case is.listed == nil:
		j.broken("not listed", "after the repair the list does not have the session")
	case is.listed.Head == is.head:
	case j.c.kind != "replace" && is.listed.Head == is.log[is.listed.Seq].Head:
		j.excuse(listLags)
	default:
		j.broken("not listed", "after the repair the list says %+v, the head is %+v", is.listed, is.head)
	}
	if err := is.fileErr; err != nil && j.left.file || err == nil && j.left.file && !bytes.Equal(is.file, j.o.file) {
		j.broken("no export", "after the repair: %d bytes, %v", len(is.file), err)
	}
	j.head(is)
	j.commits(is)
	j.entries(is)
	j.images(is)
	j.goesOn(is)
}

// head judges that the head is that of the newest commit whose bytes survive.
func (j *judgement) head(is *sight) {
	if j.s < 0 {
		return
	}
	truth := j.o.truth
	at, ok := j.sameHead(is)
	if !ok {
		want := truth.log[uint64(j.s)]
		j.broken("head", "the head is entry %s on %s, and was %s on %s with commit %d of %d", is.head.Entry, is.head.Branch,
			want.Entry, want.Branch, j.s, truth.head.Seq)
		return
	}
	want := truth.views[at]
	switch {
	case is.state.err != nil && !j.docs[at]:
		j.excuse(documentGone)
		return
	case is.state.err != nil, is.state.text != want.state:
		j.broken("state", "it is %.200s, %v, and at commit %d was %.200s", is.state.text, is.state.err, at, want.state)
		return
	}
	if !j.left.rules {
		j.excuse(rulesGone)
		return
	}
	for _, m := range want.context {
		id, _, _ := strings.Cut(m, " ")
		if !j.survives(id) {
			j.excuse(contextGone)
			return
		}
	}
	if wrong := sameMessages(is.context, want.context, is.gaps); wrong != "" {
		j.broken("context", "at commit %d: %s", at, wrong)
	}
}

// sameHead finds the commit of the session's head: the newest that survives, or a later one of which a part exists.
func (j *judgement) sameHead(is *sight) (seq uint64, ok bool) {
	for seq := uint64(j.s); seq <= j.o.truth.head.Seq; seq++ {
		if c := j.o.truth.log[seq]; c.Entry == is.head.Entry && c.Branch == is.head.Branch {
			return seq, true
		}
	}
	return 0, false
}

// survives reports whether the stored line of an entry is somewhere.
func (j *judgement) survives(id string) bool {
	for _, l := range j.o.stored {
		if !l.commit && l.id == id {
			return j.left.lines[l.raw]
		}
	}
	return id == "" // part of the document
}

// commits judges that the remaining commits have their numbers, ids and places, and that a lost state is reported as
// lost.
func (j *judgement) commits(is *sight) {
	for seq, v := range is.views {
		was, known := j.o.truth.log[seq]
		switch c := is.log[seq]; {
		case known && c.Commit == was.Commit && v.err == nil && v.state != j.o.truth.views[seq].state:
			j.broken("another state", "at commit %d it is %.200s, not %.200s", seq, v.state, j.o.truth.views[seq].state)
		case v.err != nil && !errors.Is(v.err, coppice.ErrStateLost), c.StateLost && v.err == nil:
			j.broken("view", "at commit %d: %v; the log has it as lost: %v", seq, v.err, c.StateLost)
		}
	}
	for _, l := range j.o.stored {
		if !l.commit || int64(l.seq) > j.s || !j.left.lines[l.raw] {
			continue
		}
		want, got := j.o.truth.log[l.seq], is.log[l.seq]
		if got.Commit != want.Commit || got.Reason != want.Reason || got.Entry != want.Entry || got.Branch != want.Branch {
			j.broken("commit", "commit %d is %+v, and was %+v", l.seq, got, want)
		}
		if v := is.views[l.seq]; j.docs[l.seq] && (v.err != nil || v.state != j.o.truth.views[l.seq].state) {
			j.broken("state of a commit", "at commit %d the state is %.200s, %v, and was %.200s", l.seq, v.state, v.err,
				j.o.truth.views[l.seq].state)
		}
	}
}

// entries judges that the remaining entries are there once, in order, with their bytes, and that nothing else is.
func (j *judgement) entries(is *sight) {
	now, err := linesOf(j.b, sid)
	if err != nil {
		j.broken("unreadable", "after the repair: lines: %v", err)
		return
	}
	was, lost := map[string]stored{}, map[string]bool{}
	for _, l := range j.o.stored {
		if !l.commit {
			was[l.id] = l
		}
	}
	have, records := map[string]int{}, 0 // index by id; and the records of objects
	for i, l := range now {
		if l.commit {
			continue
		}
		if strings.Contains(l.raw, `"customType":"coppice.lost"`) {
			if lost[l.id] = true; strings.Contains(l.raw, `"targetId":`) {
				delete(lost, l.id)
				records++
			}
			continue
		}
		old, known := was[l.id]
		_, twice := have[l.id]
		switch {
		case !known || twice:
			j.broken("strange entry", "%.200s", l.raw)
		case old.raw != l.raw:
			j.broken("changed entry", "it is %.300s\n\t\tand was %.300s; it survives: %v", l.raw, old.raw, j.left.lines[old.raw])
		}
		have[l.id] = i
	}
	j.losses(have, len(lost), records)
	last := -1
	for _, l := range j.o.stored {
		if l.commit || !j.left.lines[l.raw] || int64(l.seq) > j.s {
			continue
		}
		i, ok := have[l.id]
		if !ok {
			j.broken("lost entry", "entry %s of commit %d of %d is somewhere still, and not in the session (a stand-in: %v)", l.id, l.seq,
				j.o.truth.head.Seq, lost[l.id])
			continue
		}
		if i < last {
			j.broken("order", "entry %s is not in its place", l.id)
		}
		last = i
	}
}

// losses judges that lost data is recorded, each entry by a placeholder, and that verify lists it, and nothing else.
func (j *judgement) losses(have map[string]int, standIns, records int) {
	missing := 0
	for _, l := range j.o.stored {
		if _, ok := have[l.id]; !ok && !l.commit && int64(l.seq) <= j.s {
			missing++
		}
	}
	if missing > standIns {
		j.broken("loss without a record", "%d entries are missing, and %d have a stand-in", missing, standIns)
	}
	if (standIns+records > 0) != (j.told > 0) {
		j.broken("losses are not listed", "%d stand-ins and %d records of objects, and verify lists %d losses", standIns, records, j.told)
	}
}

// images judges that entries show the images that still exist.
func (j *judgement) images(is *sight) {
	was := map[string]string{}
	for _, e := range j.o.truth.entries {
		was[e.id] = e.raw
	}
	refs := map[string]bool{} // entries whose images all exist
	for _, l := range j.o.stored {
		all := true
		for _, ref := range blob.Refs([]byte(l.raw)) {
			all = all && j.left.blobs[ref.Sum]
		}
		refs[l.id] = all && !l.commit && int64(l.seq) <= j.s && j.left.lines[l.raw]
	}
	for _, e := range is.entries {
		if refs[e.id] && e.raw != was[e.id] {
			j.broken("lost image", "entry %s is %.200s, and was %.200s", e.id, e.raw, was[e.id])
		}
	}
}

// goesOn judges that the session accepts a commit, which a fresh handle sees.
func (j *judgement) goesOn(is *sight) {
	next, err := coppice.New(j.b, options("later", 6))
	if err != nil {
		j.broken("store", "%v", err)
		return
	}
	defer func() { _ = next.Close() }()
	h, err := next.Open(ctx, sid, nil)
	if err == nil {
		_, err = h.Append(ctx, entry.User("later"))
	}
	if err == nil {
		_, err = h.Commit(ctx, coppice.Turn{State: "later"})
	}
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		j.broken("no commit", "after the repair: %v", err)
		return
	}
	now := look(j.st, sid, scope{})
	if now.openErr != nil || now.readErr != nil || now.state.text != `"later"` || len(now.entries) != len(is.entries)+1 ||
		!strings.Contains(now.entries[len(now.entries)-1].raw, `"later"`) {
		j.broken("no commit", "a fresh handle sees %d entries after %d, state %s, %v, %v", len(now.entries), len(is.entries),
			now.state.text, now.openErr, now.readErr)
	}
	deep, err := j.st.Verify(ctx, sid, true)
	if bad := damaged(deep); err != nil || len(bad) > 0 {
		j.broken("damaged again", "after a commit on it: %v %s", err, strings.Join(bad, "; "))
	}
}

// damaged returns the problems that are damage.
func damaged(r coppice.Report) (out []string) {
	for _, p := range r.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			out = append(out, p.Object+": "+p.Error())
		}
	}
	return out
}

func problems(r coppice.Report) (out []string) {
	for _, p := range r.Problems {
		out = append(out, p.Object+": "+p.Error())
	}
	return out
}

// objects returns the bytes of a store.
func objects(b backend.Backend) (map[string][]byte, error) {
	all := map[string][]byte{}
	for info, err := range b.List(ctx, backend.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		p, _, err := b.Get(ctx, info.Key, backend.Range{})
		if err != nil {
			return nil, err
		}
		all[info.Key] = p
	}
	return all, nil
}

func same(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// differ names the objects that differ between two stores.
func differ(a, b map[string][]byte) string {
	var out []string
	for key, p := range a {
		if q, ok := b[key]; !ok {
			out = append(out, "-"+key)
		} else if !bytes.Equal(p, q) {
			out = append(out, fmt.Sprintf("%s (%d bytes, then %d)", key, len(p), len(q)))
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			out = append(out, "+"+key)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
