package transcript

// RestoreEnd is RestoreWorkingContext of a whole path of which only a part is given: its end, and of what is before
// that the entries that no cut takes away, which are the latest compaction and the branch summaries. base are the
// settings in force before the end, omitted counts the entries in front of it whose messages are not given; the path
// has no context_edit. false: more of the end has to be given, for the whole path may be cut elsewhere.
func RestoreEnd(
	p Profile, maxBytes int, base Settings, omitted int, stay, end []Entry,
) (w *WorkingContext, ok bool) {
	w = NewWorkingContext(p, maxBytes)
	w.base, w.omitted = base, omitted
	for _, list := range [...][]Entry{stay, end} {
		for _, e := range list {
			w.entries = append(w.entries, headOnly(w.rules, e))
			w.bytes += len(w.entries[len(w.entries)-1].Raw)
		}
	}
	if w.max < 0 || w.bytes <= w.max || omitted == 0 {
		return nil, false
	}
	g := w.groups()
	if !w.sure(g, len(stay)) {
		return nil, false
	}
	w.cutAt(g)
	return w, true
}

// sure reports whether the whole path has the same cut, where the window begins after a gap in front of index from.
func (w *WorkingContext) sure(g []place, from int) bool {
	first, turn := from, false // from first on no group reaches in front of the gap
	for i := from; i < len(g); i++ {
		turn = turn || g[i].turn // a call that waited before it waits no more
		if g[i].alone {
			first, turn = i+1, false
		}
	}
	if !turn {
		return false
	}
	stays := w.staying()
	size := w.bytes
	for i, e := range w.entries[:first] {
		if !stays(i, e) {
			size -= len(e.Raw)
		}
	}
	return size > w.target() && w.cutPoint(g, stays) >= first
}
