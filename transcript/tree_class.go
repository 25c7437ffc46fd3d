package transcript

import "github.com/coppice-go/coppice/codec"

// Filter chooses what Tree.Nodes shows.
type Filter string

// The filters of pi's tree selector. None of them shows commits.
const (
	FilterDefault     Filter = "default"      // messages: no settings, labels, custom entries, session info
	FilterNoTools     Filter = "no-tools"     // of these, no tool results and no messages of nothing but calls
	FilterUserOnly    Filter = "user-only"    // the user's messages
	FilterLabeledOnly Filter = "labeled-only" // entries that carry a label
	FilterAll         Filter = "all"          // every entry
)

// class is what the tree must know of a row at once, without its skeleton: one byte an entry.
type class uint8

const (
	classHidden class = 1 << iota // structure without speech: settings, labels, bookkeeping
	classAside                    // speaks about the tree, grows nothing: label, leaf
	classLabel
	classCommit
	classUser
	classResult // a tool's answer
	classCalls  // calls without any text
	classAmend
)

// classOf sorts an entry by type and role. Types that no one knows are shown, as pi shows them.
func classOf(typ, role string) class {
	switch typ {
	case "message":
		switch role {
		case "user":
			return classUser
		case "toolResult", "tool", "function":
			return classResult
		}
	case "label":
		return classHidden | classAside | classLabel
	case "leaf":
		return classHidden | classAside
	case "custom", "model_change", "thinking_level_change", "session_info", // pi
		"usage", "context_edit", "active_tools_change", // pi 1.5 and its harness
		"session_init", "mode_change", "ttsr_injection", "service_tier_change", // omp
		"model_usage", "title_change", "credential_pin", "reset_boundary",
		"context_compaction", "session_summary", "channel", // atomic, operator
		"session", "title":
		return classHidden
	}
	return 0
}

// flagClass adds to the class of a type and role the meaning of a row's flags.
func flagClass(c class, flags uint8) class {
	if flags&codec.FlagCommit != 0 {
		c |= classCommit | classHidden
	}
	if flags&codec.FlagAmend != 0 {
		return c | classAmend | classHidden | classAside // its other flags are of what it amends
	}
	if flags&(codec.FlagCalls|codec.FlagText|codec.FlagFailed) == codec.FlagCalls {
		c |= classCalls
	}
	return c
}

// shows reports whether a filter lets an entry through. The head is shown even if it holds nothing but
// calls, so that one's own place can be seen.
func (t *Tree) shows(f Filter, i uint32) bool {
	c := t.class(i)
	if c&classCommit != 0 {
		return false
	}
	if a, ok := t.amendment(i, noRow); ok {
		if t.hides(a) {
			return f == FilterAll
		}
		r := t.row(a)
		c = flagClass(classOf(t.row(i).Type, r.Role), r.Flags&^codec.FlagAmend)
	}
	switch f {
	case FilterDefault, "":
		return c&classHidden == 0
	case FilterNoTools:
		return c&(classHidden|classResult) == 0 && (c&classCalls == 0 || i == t.headRow())
	case FilterUserOnly:
		return c&classUser != 0
	case FilterLabeledOnly:
		return t.label(i) != ""
	case FilterAll:
		return true
	}
	return false
}
