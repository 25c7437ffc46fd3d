// Package patch makes and applies RFC 6902 patches between encoded documents. A patch is returned only after it was
// applied and produced the other document byte for byte; each of the libraries used is known to lose data in some case,
// and none is trusted.
package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/wI2L/jsondiff"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
)

const (
	// maxLCS is the longest array for which the shortest edit is computed: its time and memory grow with the product of
	// two lengths.
	maxLCS = 1000
	// maxPatchWork bounds operations times bytes of the document: an operation may move a whole array.
	maxPatchWork = 1 << 30
)

// Make returns an RFC 6902 patch that turns one encoded document into another. ok is true only if Apply produced to
// byte for byte from (patch, sorted), and the patch is at most half as long as to and no deeper than a line may be;
// otherwise the document has to be stored whole. Equal documents result in the patch [].
//
// Values in the patch are the bytes of to, so that no number, escape or order of members changes. A change in an array
// is computed by index, or, if that does not result in a short patch, by longest common subsequence.
func Make(from, to []byte) (patch []byte, sorted, ok bool) {
	if bytes.Equal(from, to) {
		return []byte("[]"), false, true
	}
	if len(to) >= wideFrom && len(from) > 0 {
		if patch, sorted, ok = makeWide(from, to); ok {
			return patch, sorted, true
		}
	}
	a, err := parseTree(from)
	if err != nil {
		return nil, false, false
	}
	b, err := parseTree(to)
	if err != nil {
		return nil, false, false
	}
	patch, sorted, ok = tryPatch(from, to, a, b, len(to)/2, false)
	if ok && len(patch) <= len(to)/16 || max(a.longest, b.longest) > maxLCS {
		return patch, sorted, ok
	}
	limit := len(to) / 2
	if ok {
		limit = len(patch) - 1
	}
	if p, s, better := tryPatch(from, to, a, b, limit, true); better {
		return p, s, true
	}
	return patch, sorted, ok
}

// tryPatch makes one patch of at most limit bytes and tests it. If only the order of members is wrong in the result, it
// tries to correct that: by sorting, and by moves of members onto themselves, which put them after the others.
func tryPatch(from, to []byte, a, b *tree, limit int, lcs bool) (patch []byte, sorted, ok bool) {
	patch, n, err := diffTrees(a, b, lcs)
	if err != nil || len(patch) > limit || n > maxPatchWork/len(from) ||
		canon.Nested(patch, "patch", canon.BodyDepth) != nil { // more levels around a value than in a document
		return nil, false, false
	}
	plain, err := applyPatch(from, patch)
	if err != nil {
		return nil, false, false
	}
	if bytes.Equal(plain, to) {
		return patch, false, true
	}
	ordered, err := reorder(plain, from)
	if err != nil {
		return nil, false, false
	}
	if bytes.Equal(ordered, to) {
		return patch, true, true
	}
	for _, sorted := range [...]bool{true, false} {
		got := plain
		if sorted {
			got = ordered
		}
		moved, ok := appendMoves(patch, got, b)
		if !ok || len(moved) > limit {
			continue
		}
		if out, err := Apply(from, moved, sorted); err == nil && bytes.Equal(out, to) {
			return moved, sorted, true
		}
	}
	return nil, false, false
}

// Apply applies an RFC 6902 patch to an encoded document. With sorted, an object of the result gets its members in
// ascending order of their names if the object at its place in from has that order: a patch can only add members at the
// end. The input is checked before a library reads it, copies are limited to canon.MaxState, and no input makes it
// panic. Errors wrap codec.ErrFormat or are a *codec.LimitError. The caller has to check the result by a checksum.
func Apply(from, patch []byte, sorted bool) ([]byte, error) {
	if len(from) >= wideFrom {
		if out, ok := applyWide(from, patch, sorted); ok && canon.Whole(out, "result", canon.EnvelopeDepth) == nil {
			return out, nil
		}
	}
	out, err := applyPatch(from, patch)
	if err != nil || !sorted {
		return out, err
	}
	return reorder(out, from)
}

func applyPatch(from, patch []byte) (out []byte, err error) {
	if err := errors.Join(
		canon.Whole(from, "document", canon.EnvelopeDepth), canon.Whole(patch, "patch", canon.EnvelopeDepth),
	); err != nil {
		return nil, fmt.Errorf("apply patch: %w", err)
	}
	if from[0] != '{' || patch[0] != '[' {
		return nil, canon.Malformed("apply patch: not an object and an array")
	}
	if string(patch) == "[]" {
		return bytes.Clone(from), nil
	}
	defer func() {
		if r := recover(); r != nil { // known cases: indices beyond an array, missing values
			out, err = nil, canon.Malformed("apply patch: %v", r)
		}
	}()
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, canon.Malformed("apply patch: %v", err)
	}
	if err := canon.AtMost("patch operations", len(ops), maxPatchWork/len(from)); err != nil {
		return nil, err
	}
	o := jsonpatch.NewApplyOptions()
	o.EscapeHTML = false
	o.SupportNegativeIndices = false
	o.AccumulatedCopySizeLimit = canon.MaxState
	if out, err = ops.ApplyWithOptions(from, o); err != nil {
		return nil, canon.Malformed("apply patch: %v", err)
	}
	if err := canon.Whole(out, "result", canon.EnvelopeDepth); err != nil { // deep values can be added at deep places
		return nil, fmt.Errorf("apply patch: %w", err)
	}
	return out, nil
}

// Diff returns the RFC 6902 patch from state a to state b, for people and programs that read history. nil = there was
// no state: the patch then adds or removes the whole. Equal states result in [].
func Diff(a, b json.RawMessage) (json.RawMessage, error) {
	from, err := state(a)
	if err != nil {
		return nil, err
	}
	to, err := state(b)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(from, to):
		return json.RawMessage("[]"), nil
	case len(from) == 0:
		return append(append([]byte(`[{"op":"add","path":"","value":`), to...), "}]"...), nil
	case len(to) == 0:
		return json.RawMessage(`[{"op":"remove","path":""}]`), nil
	}
	ta, err := parseTree(from)
	if err != nil {
		return nil, err
	}
	tb, err := parseTree(to)
	if err != nil {
		return nil, err
	}
	patch, _, err := diffTrees(ta, tb, max(ta.longest, tb.longest) <= maxLCS)
	return patch, err
}

func state(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return canon.AppendJSON(nil, raw, "state", canon.MaxDepth)
}

// diffTrees writes the patch from a to b, with values in the spelling of b, and counts its operations.
func diffTrees(a, b *tree, lcs bool) (patch []byte, n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			patch, n, err = nil, 0, canon.Malformed("diff: %v", r)
		}
	}()
	var opts []jsondiff.Option
	if lcs {
		opts = append(opts, jsondiff.LCS())
	}
	raws := rawIndex{}
	ops, err := jsondiff.CompareWithoutMarshal(a.root.loose(nil, b.root, lcs), b.root.loose(raws, a.root, lcs), opts...)
	if err != nil {
		return nil, 0, canon.Malformed("diff: %v", err)
	}
	patch = append(patch, '[')
	for _, op := range ops {
		patch = append(append(append(canon.Comma(patch), `{"op":"`...), op.Type...), `","path":`...)
		patch = canon.AppendString(patch, op.Path)
		if op.Type != jsondiff.OperationRemove {
			patch = append(append(patch, `,"value":`...), raws.of(op.Value)...)
		}
		patch = append(patch, '}')
	}
	return append(patch, ']'), len(ops), nil
}
