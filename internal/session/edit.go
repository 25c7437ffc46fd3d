package session

import (
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/transcript"
)

// Edit is a change of the document.
type Edit struct {
	State, Manager []byte // nil = unchanged; "null" = cleared

	context    []transcript.Item
	setContext bool
}

// then is the edit of doing e and then f; either may be nil.
func (e *Edit) then(f *Edit) *Edit {
	switch {
	case e == nil:
		return f
	case f == nil:
		return e
	}
	sum := *e
	if f.State != nil {
		sum.State = f.State
	}
	if f.Manager != nil {
		sum.Manager = f.Manager
	}
	if f.setContext {
		sum.context, sum.setContext = f.context, true
	}
	return &sum
}

// changes reports whether the edit can change a document.
func (e *Edit) changes() bool {
	return e != nil && (e.State != nil || e.Manager != nil || e.setContext)
}

// apply makes the document after the edit.
func (e *Edit) apply(d checkpoint.Document) checkpoint.Document {
	set := func(dst *[]byte, src []byte) {
		switch {
		case string(src) == "null":
			*dst = nil
		case src != nil:
			*dst = src
		}
	}
	set((*[]byte)(&d.State), e.State)
	set((*[]byte)(&d.Manager), e.Manager)
	if e.setContext {
		d.Context = e.context
	}
	return d
}
