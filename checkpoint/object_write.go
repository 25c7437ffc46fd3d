package checkpoint

import (
	"github.com/coppice-go/coppice/checkpoint/internal/body"
	"github.com/coppice-go/coppice/codec"
)

// The small lists of a body and the summary, in the bytes that codec.Marshal returns for them, without its reflection,
// which costs more than the writing.

// fields is a struct that writes its fields, or makes w count them.
type fields[T any] interface {
	*T
	write(w *body.Writer)
}

// appendMap appends a struct as a map.
func appendMap[T any, P fields[T]](b []byte, v P) []byte {
	var w body.Writer
	v.write(&w)
	w.Begin(b)
	v.write(&w)
	return w.B
}

// appendMaps returns a list of structs; nil stays nil.
func appendMaps[T any, P fields[T]](list []T) []byte {
	if list == nil {
		return []byte{0xc0}
	}
	b := body.AppendArray(make([]byte, 0, 3+128*len(list)), len(list))
	for i := range list {
		b = appendMap(b, P(&list[i]))
	}
	return b
}

func (r *BranchRef) write(w *body.Writer) {
	w.Text("name", r.Name)
	w.OptText("head", r.Head)
	w.Int("ord", r.Ord)
}

func (r *PlainRef) write(w *body.Writer) {
	w.Text("name", r.Name)
	w.Uint("first", r.First)
	w.Uint("count", r.Count)
	w.Uint("seq", r.FirstSeq)
	w.Int("bytes", r.Bytes)
	w.Uint("epoch", r.Epoch)
	w.Uint("key", r.Key)
	w.Uint("self", uint64(r.Self))
}

func (s *wireSummary) write(w *body.Writer) {
	w.Text("id", s.ID)
	w.Uint("seq", s.Seq)
	w.Uint("epoch", s.Epoch)
	w.Text("commit", s.Commit)
	w.OptText("entry", s.Entry)
	w.OptText("branch", s.Branch)
	w.OptText("title", s.Title)
	w.OptText("cwd", s.Cwd)
	w.OptText("parent", s.Parent)
	w.OptText("preview", s.Preview)
	w.Int("created", s.Created)
	w.Int("updated", s.Updated)
	w.Uint("entries", s.Entries)
	w.Int("bytes", s.Bytes)
	w.OptText("first", s.First)
	w.OptText("status", s.Status)
	w.OptText("relation", s.Relation)
	w.OptText("meta", s.Meta)
	w.OptTrue("metaOver", s.MetaOver)
	w.OptTrue("internal", s.Internal)
	w.OptTrue("gone", s.Tombstone)
	w.OptText("snapshot", s.Snapshot)
	w.OptText("tag", s.Tag)
	w.OptText("reason", s.Reason)
	w.OptText("log", s.LogName)
	w.OptInt("logBytes", s.LogBytes)
}

// appendRefs returns the references of one level, each an array in the encoding of codec.Ref.
func appendRefs(level []codec.Ref) []byte {
	if level == nil {
		return []byte{0xc0}
	}
	b := body.AppendArray(make([]byte, 0, 3+64*len(level)), len(level))
	for i := range level {
		r := &level[i]
		b = body.AppendUint(body.AppendArray(b, 8), r.First)
		b = body.AppendUint(b, uint64(r.Count))
		b = body.AppendUint(b, r.FirstSeq)
		b = body.AppendInt(b, r.RawBytes)
		b = body.AppendInt(b, r.Bytes)
		b = body.AppendUint(b, r.Epoch)
		b = body.AppendText(b, r.Rnd)
		b = append(append(b, 0xc4, byte(len(r.Sum))), r.Sum[:]...)
	}
	return b
}
