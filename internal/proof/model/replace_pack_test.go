package model

// pack encodes a state canonically: fields that can no longer have an effect are zeroed, and identical writers are
// sorted, so that fewer states represent all.
func (m *replaceModel) pack(full *replaceState) key {
	s := *full
	m.forget(&s)
	var w bitWriter
	for i := range s.c[1:] {
		c := &s.c[i+1]
		w.put(bitsOf(c.parent, 3, c.epoch, 3, c.refs, 4, c.blobs, 2, c.turn, 3, c.tag, 3, flags(c.foreign, c.tomb), 2), 20)
	}
	for i := range s.obj {
		o := &s.obj[i]
		w.put(bitsOf(flags(o.there, false), 1, o.epoch, 3, o.covers, 4, o.made, 3), 11)
	}
	w.put(bitsOf(s.made, 3, s.head, 3, s.named, 3, s.blobs, 2, s.snaps>>1, 7, s.acked>>1, 7, s.failed>>1, 7), 32)
	ws := [writersMax]uint64{packWriter(&s.w[0]), packWriter(&s.w[1]), packWriter(&s.w[2])}
	if ws[0] < ws[1] {
		ws[0], ws[1] = ws[1], ws[0]
	}
	if ws[1] < ws[2] {
		ws[1], ws[2] = ws[2], ws[1]
	}
	if ws[0] < ws[1] {
		ws[0], ws[1] = ws[1], ws[0]
	}
	for _, x := range ws {
		w.put(x, 30)
	}
	for i := range s.fl {
		r := &s.fl[i]
		w.put(bitsOf(r.id, 3, r.cond, 3, flags(r.del, false), 1), 7)
	}
	g, l := &s.gc, &s.left
	w.put(bitsOf(g.step, 2, g.found, 4, g.roots, 4, g.epoch, 3, g.blobs, 2), 15)
	w.put(bitsOf(l.opens, 3, l.crashes, 3, l.hidden, 3, l.busy, 3, l.rebases, 3, l.rolls, 3, l.snapshots, 3), 21)
	w.put(bitsOf(l.drops, 3, l.blobs, 3, l.deletes, 3, l.gcs, 3), 12)
	return w.k
}

func packWriter(v *writer) uint64 {
	return bitsOf(v.st, 3, v.view, 3, v.pending, 3, v.turn, 3, v.doubts>>1, 7, v.tries, 2, v.seg, 3) |
		bitsOf(v.blobs, 2, flags(v.fresh, v.lost), 2, flags(v.foreign, v.rebases), 2)<<24
}

// bitsOf packs pairs of a number and its width. A number that does not fit is a fault of the model.
func bitsOf(pairs ...uint8) (x uint64) {
	at := uint(0)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i]>>pairs[i+1] != 0 {
			panic("model: a number does not fit into its bits")
		}
		x |= uint64(pairs[i]) << at
		at += uint(pairs[i+1])
	}
	return x
}

func flags(a, b bool) (x uint8) {
	if a {
		x = 1
	}
	if b {
		x |= 2
	}
	return x
}

func (m *replaceModel) unpack(k key) (s replaceState) {
	r := bitReader{k: &k}
	for i := range s.c[1:] {
		c := &s.c[i+1]
		c.parent, c.epoch, c.refs, c.blobs, c.turn, c.tag = r.get(3), r.get(3), r.get(4), r.get(2), r.get(3), r.get(3)
		c.foreign, c.tomb = r.flag(), r.flag()
	}
	for i := range s.obj {
		o := &s.obj[i]
		o.there, o.epoch, o.covers, o.made = r.flag(), r.get(3), r.get(4), r.get(3)
	}
	s.made, s.head, s.named, s.blobs = r.get(3), r.get(3), r.get(3), r.get(2)
	s.snaps, s.acked, s.failed = r.get(7)<<1, r.get(7)<<1, r.get(7)<<1
	for i := range s.w {
		v := &s.w[i]
		v.st, v.view, v.pending, v.turn = r.get(3), r.get(3), r.get(3), r.get(3)
		v.doubts, v.tries, v.seg, v.blobs = r.get(7)<<1, r.get(2), r.get(3), r.get(2)
		v.fresh, v.lost, v.foreign, v.rebases = r.flag(), r.flag(), r.flag(), r.flag()
	}
	for i := range s.fl {
		f := &s.fl[i]
		f.id, f.cond, f.del = r.get(3), r.get(3), r.flag()
	}
	g, l := &s.gc, &s.left
	g.step, g.found, g.roots, g.epoch, g.blobs = r.get(2), r.get(4), r.get(4), r.get(3), r.get(2)
	l.opens, l.crashes, l.hidden, l.busy, l.rebases, l.rolls = r.get(3), r.get(3), r.get(3), r.get(3), r.get(3), r.get(3)
	l.snapshots, l.drops, l.blobs, l.deletes, l.gcs = r.get(3), r.get(3), r.get(3), r.get(3), r.get(3)
	return s
}

// forget zeroes the fields that no event and no invariant depends on any more.
func (m *replaceModel) forget(s *replaceState) {
	m.dropDead(s)
	for _, at := range [...]int{0, 1, 0} {
		if a, b := &s.fl[at], &s.fl[at+1]; a.id<<3|a.cond < b.id<<3|b.cond {
			*a, *b = *b, *a
		}
	}
	past := s.lineage(s.head, 0)
	sent, whole := uint8(0), s.snaps|1<<s.head
	for _, r := range s.fl {
		sent |= 1 << r.id
	}
	for i := range s.w {
		v := &s.w[i]
		if v.st == closed || v.st == conflicted || v.st == doubtful {
			v.tries, v.lost, v.rebases, v.blobs, v.fresh = 0, false, false, 0, false
			if !m.keepUploads {
				v.seg, v.foreign = 0, false
			}
		}
		if v.st == conflicted || v.st == doubtful {
			v.view = 0
		}
		if v.st == conflicted {
			v.pending, v.doubts = 0, 0
		}
		whole |= 1<<v.view | 1<<v.pending
	}
	for i := range s.w {
		s.w[i].doubts &= past | sent | whole
	}
	live := past | sent | whole
	s.failed &= live
	if m.sameBody || m.unconditional || m.deleteHead || m.dense {
		return
	}
	for id := uint8(1); id <= s.made; id++ {
		switch c := &s.c[id]; {
		case live>>id&1 == 0:
			*c = commit{}
		case (whole|sent)>>id&1 == 0: // an ancestor: only its position and its images matter
			c.epoch, c.refs, c.tag = 0, 0, 0
			if s.left.rolls == 0 {
				c.blobs = 0
			}
		}
	}
}

// dropDead removes requests that can have no effect and whose answer is not awaited. Versions never recur, unless the
// rule that ensures it is left out.
func (m *replaceModel) dropDead(s *replaceState) {
	if m.sameBody || m.unconditional || m.deleteHead {
		return
	}
	for i := range s.fl {
		r := &s.fl[i]
		awaited := false
		for j := range s.w {
			awaited = awaited || s.w[j].st == waiting && s.w[j].pending == r.id
		}
		if r.id != 0 && !awaited && r.cond != s.version() {
			*r = request{}
		}
	}
}
