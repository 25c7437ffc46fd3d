package transcript

import "github.com/coppice-go/coppice/transcript/tree"

type (
	// Tree is the tree of a session at one moment.
	Tree = tree.Tree
	// Node is an entry as the tree shows it.
	Node = tree.Node
	// Branch is a name for a head; Head "" = an empty branch: a new root comes next.
	Branch = tree.Branch
	// Filter chooses what Tree.Nodes shows.
	Filter = tree.Filter
)

// The filters of pi's tree selector. None of them shows commits.
const (
	FilterDefault     = tree.FilterDefault     // what is said: no settings, labels, custom entries, session info
	FilterNoTools     = tree.FilterNoTools     // of these, no tool results and no messages of nothing but calls
	FilterUserOnly    = tree.FilterUserOnly    // the user's messages
	FilterLabeledOnly = tree.FilterLabeledOnly // entries that carry a label
	FilterAll         = tree.FilterAll         // every entry
)
