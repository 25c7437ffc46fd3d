package repair

import (
	"encoding/json"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// writer makes commits of what is known of them.
type writer struct {
	*repair
	made  *remake
	known map[string]int64 // ordinals of entries by id
	ids   map[int64]string // and the other way
	ups   map[int64]int64  // parents by ordinal
	exact bool             // the head before is the one that the lines after it build upon
}

// commit makes one commit; after is its id, where the commit after it names that.
func (w *writer) commit(c *Commit, after string) error {
	st := w.made.st
	rec := checkpoint.Record{
		Reason: reason, Writer: w.cfg.Writer, Branch: st.Summary.Branch, Head: st.Summary.Entry,
		HeadOrd: st.HeadOrd,
	}
	head := st.LineHead()
	if c.Record != nil {
		rec = *c.Record
		if rec.Base != nil {
			head, w.exact = rec.Base.HeadOrd, true
		}
	} else {
		if _, known := w.know.commits[c.Seq]; !known {
			w.made.commits++
		}
		w.exact = false
	}
	raws, parents, err := w.entries(c, head)
	if err != nil {
		return err
	}
	if c.Record == nil {
		if err := w.guess(&rec, c, after); err != nil {
			return err
		}
	}
	// its place is not known for sure: fewer lines are left
	if own := int64(st.Next) + int64(len(raws)); rec.HeadOrd >= own {
		rec.Head, rec.HeadOrd = st.Summary.Entry, st.HeadOrd
		if n := len(c.Entries); n > 0 {
			rec.Head, rec.HeadOrd = c.Entries[n-1].ID, int64(c.Entries[n-1].Ord)
		}
	}
	rec.Epoch = max(rec.Epoch, st.Summary.Epoch)
	rec.Torn = w.torn
	if rec.Doc == nil && w.documents[c.Seq] != nil {
		rec.Doc, rec.Patch, rec.Sorted = w.documents[c.Seq], nil, false
	}
	known := c.Record == nil && (changesNothing(rec.Reason) || keeps([]byte(st.DocumentOfLine()), c.next))
	fits, err := w.made.commit(rec, raws, parents, known)
	if err != nil {
		return err
	}
	w.made.total += len(raws) + 1
	w.passed(w.made.st)
	if !fits {
		w.made.documents++
	}
	w.exact = c.Record != nil
	return nil
}

// changesNothing reports whether commits of a reason leave the document as it was.
func changesNothing(reason string) bool {
	return reason == state.ReasonCreate || reason == state.ReasonImport || reason == state.ReasonRoll
}

// keeps reports whether a commit whose line is lost has doc, the document before it: the commit after it, rec, changes
// nothing and has doc. A patch proves nothing, as it can replace the changes of the lost commit.
func keeps(doc []byte, rec *checkpoint.Record) bool {
	return rec != nil && doc != nil && rec.Doc == nil && rec.Patch == nil && codec.CRC(doc) == rec.DocCRC
}

// guess fills in a commit whose line is lost: from the lineage of a checkpoint or a snapshot, or else with its last
// entry that is not lost and grows from the head before it as the head. The head may have moved to a branch whose name
// is lost.
func (w *writer) guess(rec *checkpoint.Record, c *Commit, after string) error {
	id, now, err := w.repair.store.LineID()
	if err != nil {
		return err
	}
	rec.ID, rec.Time = id, now
	if c.Reason != "" {
		rec.Reason = c.Reason
	}
	if after != "" {
		rec.ID = after
	}
	for i := len(c.Entries) - 1; i >= 0; i-- {
		if e := &c.Entries[i]; !e.lost && w.grows(int64(e.Ord), rec.HeadOrd) {
			rec.Head, rec.HeadOrd = e.ID, int64(e.Ord)
			break
		}
	}
	if k, ok := w.know.commits[c.Seq]; ok {
		rec.ID, rec.Time, rec.Reason, rec.Writer, rec.Branch = k.Commit, k.Time, k.Reason, k.Writer, k.Branch
		rec.Key, rec.Kept, rec.Snapshot, rec.Epoch = k.Key, k.Kept, k.Snapshot, k.Epoch
		rec.Head, rec.HeadOrd = k.Entry, k.HeadOrd
	}
	return nil
}

// grows reports whether an entry grows from the head before, by entries of the part.
func (w *writer) grows(ord, head int64) bool {
	for range len(w.ups) + 1 {
		up, ok := w.ups[ord]
		switch {
		case !ok:
			return false
		case up == head:
			return true
		}
		ord = up
	}
	return false
}

// entries returns the lines of a commit and their parents; lost ones get a stand-in.
func (w *writer) entries(c *Commit, head int64) (raws [][]byte, parents []int64, err error) {
	var deltas []checkpoint.ParentDelta
	told := c.Record != nil && c.Record.Entries == len(c.Entries)
	if told {
		deltas = c.Record.Parents
	}
	prev := head
	for i := range c.Entries {
		e := &c.Entries[i]
		parent := prev
		ord, named := w.known[e.From]
		row, said := w.parents[e.Ord]
		switch {
		case said && row < int64(e.Ord):
			parent = row
			if len(deltas) > 0 && deltas[0].Index == i {
				deltas = deltas[1:]
			}
		case told && len(deltas) > 0 && deltas[0].Index == i:
			if parent = -1; deltas[0].Delta != 0 {
				parent = int64(e.Ord) - deltas[0].Delta
			}
			deltas = deltas[1:]
		case told && (i > 0 || w.exact), e.Raw == nil: // the usual one
		case e.From == "":
			parent = -1
		case named:
			parent = ord
		}
		if parent == int64(e.Ord) {
			parent = prev
		}
		if e.Raw == nil {
			e.lost = true
			if err := w.lostEntry(c, i, parent); err != nil {
				return nil, nil, err
			}
			w.made.entries = append(w.made.entries, e.ID)
		}
		w.known[e.ID], w.ids[int64(e.Ord)], w.ups[int64(e.Ord)] = int64(e.Ord), e.ID, parent
		prev = int64(e.Ord)
		raws, parents = append(raws, e.Raw), append(parents, parent)
	}
	return raws, parents, nil
}

// lostEntry makes the stand-in for an entry of which nothing is left. It has the id of that entry if it is known, else
// the one that the next entry names as its parent, unless another entry has that id.
func (w *writer) lostEntry(c *Commit, i int, parent int64) error {
	e := &c.Entries[i]
	id, now, err := w.repair.store.LineID()
	if err != nil {
		return err
	}
	if _, taken := w.known[e.ID]; e.ID == "" || taken {
		e.ID = w.idOf(c, i, id)
	}
	e.Raw, err = lostEntryLine(e.ID, w.ids[parent], now, e.Ord, w.torn)
	return err
}

// lostEntryLine makes the line that takes the place of a lost entry.
func lostEntryLine(id, parent string, now time.Time, ord uint64, torn string) ([]byte, error) {
	return lostLine(id, parent, now, map[string]any{
		"customType": segment.LostType, "data": map[string]any{"ordinal": ord, "torn": torn},
	})
}

// idOf returns the id of a lost entry as the lines around it name it; fresh where none does.
func (w *writer) idOf(c *Commit, i int, fresh string) string {
	if i+1 < len(c.Entries) {
		if from := c.Entries[i+1].From; from != "" {
			if _, taken := w.known[from]; !taken {
				return from
			}
		}
		return fresh
	}
	if rec := c.Record; rec != nil && rec.HeadOrd == int64(c.Entries[i].Ord) && rec.Head != "" {
		return rec.Head
	}
	return fresh
}

// lostObject makes the entry that records the loss of an object.
func lostObject(l loss, id, parent string, now time.Time) ([]byte, error) {
	data := map[string]any{"kind": string(l.how)}
	if l.torn != "" {
		data["torn"] = l.torn
	}
	return lostLine(id, parent, now, map[string]any{
		"customType": segment.LostType, "targetId": l.name, "data": data,
	})
}

func lostLine(id, parent string, now time.Time, fields map[string]any) ([]byte, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return transcript.Draft{Type: "custom", Body: body}.Line(id, parent, now)
}
