package coppice

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// windowAt reads the working context at a place, bounded to bound bytes. It reads the entries that the latest
// compaction on the path kept and those after it; of earlier entries only the ones that set a model, thinking level or
// mode.
func (s *Session) windowAt(
	ctx context.Context, m *treeView, at journal.Place, p transcript.Profile, bound int,
) (*transcript.WorkingContext, error) {
	ord, ok := m.ordinal(at)
	if !ok {
		return transcript.NewWorkingContext(p, bound), nil
	}
	path := slices.Collect(m.up(ord))
	slices.Reverse(path)
	from, err := s.keptFrom(ctx, m, path, p)
	if err != nil {
		return nil, err
	}
	if win, err := s.windowEnd(ctx, m, path, from, p, bound); win != nil || err != nil {
		return win, err
	}
	base, err := s.settingsBefore(ctx, m, path[:from], p)
	if err != nil {
		return nil, err
	}
	entries, err := s.bodies(ctx, m, path[from:])
	if err != nil {
		return nil, err
	}
	return transcript.RestoreWorkingContext(p, bound, base, 0, entries), nil
}

// keptFrom returns the index in path of the first entry that the context can contain: the first entry that the latest
// compaction kept, or 0 if the path has no compaction or the profile does not determine it by entry types.
func (s *Session) keptFrom(ctx context.Context, m *treeView, path []uint64, p transcript.Profile) (int, error) {
	if p == transcript.OMP || p == transcript.Atomic {
		return 0, nil // in these profiles the type of an entry does not show where a context begins
	}
	for i := len(path) - 1; i >= 0; i-- {
		if typ, _ := m.Tree.Kind(path[i]); typ != "compaction" {
			continue
		}
		entries, err := s.bodies(ctx, m, path[i:i+1])
		if err != nil {
			return 0, err
		}
		var kept struct {
			Pi       string `json:"firstKeptEntryId"`
			Operator string `json:"first_kept_entry_id"`
		}
		if json.Unmarshal(entries[0].Raw, &kept) != nil {
			return 0, nil
		}
		for k := i - 1; k >= 0; k-- {
			if id := m.Tree.ID(path[k]); id == kept.Pi || id == kept.Operator {
				return k, nil
			}
		}
		return i, nil
	}
	return 0, nil
}

// settingsBefore returns the settings (model, thinking level, mode) in force at the end of path. It reads the last
// entry of each type that can set one, and the last modelsRead answers, because an answer can name a model.
func (s *Session) settingsBefore(
	ctx context.Context, m *treeView, path []uint64, p transcript.Profile,
) (transcript.Settings, error) {
	var last []uint64
	left := map[string]int{
		"message": modelsRead, "model_change": 1, "thinking_level_change": 1, "mode_change": 1,
	}
	for i := len(path) - 1; i >= 0 && len(left) > 0; i-- {
		kind, role := m.Tree.Kind(path[i])
		if n := left[kind]; n == 0 || kind == "message" && role != "assistant" {
			continue
		}
		last = append(last, path[i])
		if left[kind]--; left[kind] == 0 {
			delete(left, kind)
		}
	}
	if len(last) == 0 {
		return transcript.Settings{}, nil
	}
	slices.Reverse(last)
	entries, err := s.bodies(ctx, m, last)
	if err != nil {
		return transcript.Settings{}, err
	}
	return transcript.SettingsAfter(p, transcript.Settings{}, entries), nil
}

// modelsRead is the maximum number of answers that settingsBefore reads to find one that names a model.
const modelsRead = 32

// windowEnd reads a bounded window from the end of path, without the messages that its bound cuts off. The context can
// contain the entries of path from index from on. A nil result means that the caller has to read all of those.
func (s *Session) windowEnd(
	ctx context.Context, m *treeView, path []uint64, from int, p transcript.Profile, bound int,
) (*transcript.WorkingContext, error) {
	most := transcript.NewWorkingContext(p, bound).MaxBytes()
	if typ, _ := m.Tree.Kind(path[len(path)-1]); most < 0 || typ == "leaf" ||
		p == transcript.OMP || p == transcript.Atomic {
		return nil, nil
	}
	cut, size := len(path), 0
	for want := most + most/16; ; want *= 2 {
		for ; cut > from && size < want; cut-- {
			size += m.Tree.Size(path[cut-1])
		}
		if cut == from {
			return nil, nil
		}
		stay, omitted, ok := m.beforeCut(path[from:], cut-from)
		if !ok {
			return nil, nil
		}
		base, err := s.settingsBefore(ctx, m, path[:cut], p)
		if err != nil {
			return nil, err
		}
		entries, err := s.bodies(ctx, m, append(stay, path[cut:]...))
		if err != nil {
			return nil, err
		}
		n := len(stay)
		if win, ok := transcript.RestoreEnd(p, bound, base, omitted, entries[:n], entries[n:]); ok {
			return win, nil
		}
	}
}

// beforeCut splits the first n entries of path for a cut after them. stay are those that a cut never removes: the
// latest compaction and the branch summaries. omitted is the number of messages that the cut removes. ok is false if an
// edit on the path can change what these entries are.
func (m *treeView) beforeCut(path []uint64, n int) (stay []uint64, omitted int, ok bool) {
	compacted := false // the latest compaction was met
	for i := len(path) - 1; i >= 0; i-- {
		switch typ, _ := m.Tree.Kind(path[i]); {
		case typ == "context_edit":
			return nil, 0, false
		case typ == "compaction":
			if !compacted && i < n {
				stay = append(stay, path[i])
			}
			compacted = true
		case i >= n || m.hidden(path[i]):
		case typ == "branch_summary":
			stay = append(stay, path[i])
		case typ == "message", typ == "custom_message":
			omitted++
		}
	}
	slices.Reverse(stay)
	return stay, omitted, true
}
