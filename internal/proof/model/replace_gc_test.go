package model

// gcOrder is the sequence of a collector's actions; others may act between any two.
var gcOrder = map[gcRule][]uint8{
	gcEpoch:         {evList, evRead, evCollect},
	gcEpochEqual:    {evList, evRead, evCollect},
	gcBlobs:         {evList, evRead, evCollect},
	gcRootsThenList: {evRead, evList, evCollect},
	gcListThenRoots: {evList, evRead, evCollect},
	gcAtOnce:        {evList, evCollect},
	gcHeadThenSnaps: {evList, evRead, evReadSnaps, evCollect},
	gcSnapsThenHead: {evList, evReadSnaps, evRead, evCollect},
}

// collect is the collector's next action.
func (x *step) collect() {
	s := x.s
	if s.gc.step == 0 && s.left.gcs == 0 {
		return
	}
	t := *s
	g := &t.gc
	if g.step == 0 {
		t.left.gcs--
	}
	e := event{what: gcOrder[x.m.gc][g.step]}
	g.step++
	switch e.what {
	case evList:
		g.found = t.there()
		e.a = g.found
		if x.m.gc == gcAtOnce {
			x.readHead(&t)
		}
	case evRead:
		x.readHead(&t)
		e.a = t.head
	case evReadSnaps:
		e.a = t.snaps
		for id := uint8(1); id <= t.made; id++ {
			if t.snaps>>id&1 == 1 {
				g.roots |= t.reach(t.c[id].refs)
			}
		}
	default:
		e.a = x.deletes(&t)
	}
	x.emit(&t, e)
}

// readHead records what the head reaches, and its epoch. Everything of a deleted session is removed; without a head a
// session may be about to be created.
func (x *step) readHead(t *replaceState) {
	g, h := &t.gc, &t.c[t.head]
	switch {
	case t.head == 0:
		*g = collection{}
		return
	case h.tomb:
		g.epoch = 7
		return
	}
	g.roots |= t.reach(h.refs)
	g.epoch = h.epoch
	if x.m.gc == gcBlobs {
		g.blobs = t.blobs &^ h.blobs
	}
}

// deletes ends the run.
func (x *step) deletes(t *replaceState) (gone uint8) {
	g := &t.gc
	for i := range t.obj {
		o := &t.obj[i]
		if g.found>>i&1 == 0 || g.roots>>i&1 == 1 || !o.there {
			continue
		}
		old := o.epoch < g.epoch
		switch x.m.gc {
		case gcRootsThenList, gcListThenRoots, gcAtOnce:
			old = true
		case gcEpochEqual:
			old = o.epoch <= g.epoch
		default:
		}
		if old {
			gone |= 1 << i
			o.there = false
		}
	}
	t.blobs &^= g.blobs
	t.gc = collection{}
	return gone
}
