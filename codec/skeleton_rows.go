package codec

import (
	"sort"
)

// First returns the ordinal of row 0.
func (s *Skeleton) First() uint64 { return s.first }

// Len returns the number of rows.
func (s *Skeleton) Len() int { return s.n }

// Parent returns the ordinal of row i's parent, NoParent for a root. It may be before the first row or after the last.
func (s *Skeleton) Parent(i int) int64 {
	z := s.columns[colParent].at(i)
	if z == 0 {
		return NoParent
	}
	return int64(s.first) + int64(i) - unzigzag(z)
}

// Kind returns the type and the role of row i.
func (s *Skeleton) Kind(i int) (typ, role string) {
	k := &s.kinds[s.columns[colKind].at(i)]
	return k.typ, k.role
}

// KindIndex returns the index of row i's type and role in the table of this skeleton.
func (s *Skeleton) KindIndex(i int) int { return int(s.columns[colKind].at(i)) }

// Kinds returns the number of pairs of type and role in the table.
func (s *Skeleton) Kinds() int { return len(s.kinds) }

// KindAt returns pair k of the table.
func (s *Skeleton) KindAt(k int) (typ, role string) { return s.kinds[k].typ, s.kinds[k].role }

// Flags returns the Flag bits of row i.
func (s *Skeleton) Flags(i int) uint8 { return uint8(s.columns[colFlags].at(i)) }

// Size returns the bytes of row i's line, without its newline.
func (s *Skeleton) Size(i int) uint32 { return uint32(s.columns[colSize].at(i)) }

// Time returns the time of row i in Unix milliseconds.
func (s *Skeleton) Time(i int) int64 { return int64(s.columns[colTime].at(i)) }

// idPayload returns the code of row i's id and its payload, without the length of a long one.
func (s *Skeleton) idPayload(i int) (code byte, payload []byte) {
	codes := &s.columns[colIDCode]
	code = byte(codes.at(i))
	if s.idSize > 0 {
		return code, s.ids[i*s.idSize : (i+1)*s.idSize : (i+1)*s.idSize]
	}
	at := int(s.idMarks[i/idStride])
	for j := i &^ (idStride - 1); j < i; j++ {
		size, _, _ := idSize(byte(codes.at(j)), s.ids[at:])
		at += size
	}
	size, skip, _ := idSize(code, s.ids[at:])
	return code, s.ids[at+skip : at+size : at+size]
}

// AppendID appends the id of row i to dst.
func (s *Skeleton) AppendID(dst []byte, i int) []byte {
	code, payload := s.idPayload(i)
	return appendID(dst, code, payload, s.Time(i))
}

// ID returns the id of row i.
func (s *Skeleton) ID(i int) string {
	var buf [64]byte
	return string(s.AppendID(buf[:0], i))
}

// AppendPackedID appends the packed form of row i's id (see Row.AppendPackedID) to dst, for an index by id.
func (s *Skeleton) AppendPackedID(dst []byte, i int) []byte {
	code, payload := s.idPayload(i)
	return appendIDKey(dst, code, payload, s.Time(i))
}

// Target returns the id that row i refers to, "" for none.
func (s *Skeleton) Target(i int) string {
	at := sort.Search(s.targetRows.n, func(k int) bool { return s.targetRows.at(k) >= uint64(i) })
	if at == s.targetRows.n || s.targetRows.at(at) != uint64(i) {
		return ""
	}
	start := uint64(0)
	if at > 0 {
		start = s.targetEnds.at(at - 1)
	}
	id := s.targetIDs[start:s.targetEnds.at(at)]
	_, skip, _ := idSize(id[0], id[1:])
	return string(appendID(nil, id[0], id[1+skip:], 0))
}

// Preview returns the preview of row i. If the previews cannot be decoded, which Verify reports, it is empty.
func (s *Skeleton) Preview(i int) string { return s.Previews().At(i) }

// Previews are the decoded previews of a skeleton. A reference keeps them in memory: at most 85 bytes a row.
type Previews struct{ t *previewText }

// Previews returns the previews of all rows, for a pass over many of them. If they cannot be decoded, which Verify
// reports, they are empty.
func (s *Skeleton) Previews() Previews {
	if s.previewsRaw == 0 || s.unreadable.Load() {
		return Previews{}
	}
	t, err := s.previewColumn()
	if err != nil {
		return Previews{}
	}
	return Previews{t}
}

// At returns the preview of row i.
func (p Previews) At(i int) string {
	if p.t == nil {
		return ""
	}
	start := uint32(0)
	if i > 0 {
		start = p.t.ends[i-1] + 1
	}
	return p.t.text[start:p.t.ends[i]]
}

// Row returns the whole row i: a convenience that allocates.
func (s *Skeleton) Row(i int) Row {
	typ, role := s.Kind(i)
	return Row{
		ID: s.ID(i), Parent: s.Parent(i), Target: s.Target(i), Type: typ, Role: role,
		Flags: s.Flags(i), Size: s.Size(i), Time: s.Time(i), Preview: s.Preview(i),
	}
}

// Verify decodes the previews, the only part that DecodeSkeleton does not check.
func (s *Skeleton) Verify() error {
	_, err := s.previewColumn()
	return err
}

// knownStrings are the types and roles of every session: they need no memory of their own.
var knownStrings = func() map[string]string {
	m := map[string]string{}
	for _, s := range []string{
		"", "message", "user", "assistant", "toolResult", "tool", "system", "bashExecution", "custom", "custom_message",
		"model_change", "thinking_level_change", "compaction", "branch_summary", "label", "session_info",
		"session_init",
		"mode_change", "ttsr_injection", "service_tier_change", "leaf", "developer", "hookMessage", "compactionSummary",
		"branchSummary", "model", "function",
	} {
		m[s] = s
	}
	return m
}()

func knownString(p []byte) string {
	if s, ok := knownStrings[string(p)]; ok {
		return s
	}
	return string(p)
}
