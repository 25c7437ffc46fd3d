package api

import (
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/branch"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// Node is an entry of the tree.
type Node struct {
	ID       string    `json:"id"`
	ParentID *string   `json:"parentId" doc:"the nearest ancestor that passes the filter; null: none"`
	Ordinal  uint64    `json:"ordinal" doc:"number of the entry in the session"`
	Type     string    `json:"type"`
	Role     string    `json:"role"`
	Preview  string    `json:"preview" doc:"one line of at most 80 bytes"`
	Label    string    `json:"label"`
	OnPath   bool      `json:"onPath" doc:"on the path to the head"`
	Time     time.Time `json:"time"`
	Size     int       `json:"size" doc:"length of the entry's line as it was appended"`

	AmendedBy string `json:"amendedBy,omitempty" doc:"the amendment whose text preview and role are of"`
	Withdrawn bool   `json:"withdrawn,omitempty" doc:"the amendment hides the entry"`
	Failed    bool   `json:"failed,omitempty" doc:"an answer that ended in an error, or a result of a call that failed"`
}

// Row is an entry of the tree in drawing order.
type Row struct {
	Node
	Depth     int        `json:"depth" doc:"number of ancestors in the list"`
	Indent    int        `json:"indent" doc:"number of forks on the path"`
	Children  int        `json:"children" doc:"number of rows directly below"`
	Version   int        `json:"version" doc:"place among the rows with the same parent, from 1"`
	Versions  int        `json:"versions" doc:"number of rows with the same parent"`
	Folded    bool       `json:"folded"`
	Hidden    int        `json:"hidden" doc:"of a folded row: number of entries below it"`
	LabelTime *time.Time `json:"labelTime" doc:"when the label was set; null: there is none"`
}

// Branch is a branch and its head.
type Branch struct {
	Name  string  `json:"name"`
	Head  *string `json:"head" doc:"null: the next entry becomes a root"`
	Title string  `json:"title,omitempty" doc:"what people read in place of a name that was made"`
	At    *string `json:"at,omitempty" doc:"the nearest ancestor of the head that is in the list, if the head is not"`
}

// TreeHead is what comes before the nodes of a tree.
type TreeHead struct {
	Head     *string  `json:"head" doc:"the entry from which the next one grows"`
	HeadAt   *string  `json:"headAt,omitempty" doc:"the nearest ancestor of the head that is in the list, if it is not"`
	Branches []Branch `json:"branches"`
	Selected *string  `json:"selected,omitempty" doc:"the selected entry, or its nearest ancestor that is shown"`
	Missing  uint64   `json:"missing,omitempty" doc:"number of the newest commit that was made and is lost"`
	Cause    string   `json:"cause,omitempty" doc:"over HTTP: why what is drawn is only what is intact"`
}

// TreeHeadOf returns the heads of a session and of its branches, and for each that is not shown its nearest ancestor
// that is.
func TreeHeadOf(t *transcript.Tree, shown func(ordinal uint64) bool) TreeHead {
	at := map[string]*string{}
	for ordinal, marks := range view.Marks(t, shown) {
		id := t.ID(ordinal)
		for _, m := range marks {
			if m.Entry != id {
				at[m.Branch] = &id
			}
		}
	}
	head := TreeHead{Head: null(t.Head()), HeadAt: at[""], Branches: []Branch{}}
	titles := branch.Titles(t)
	for _, b := range t.Branches() {
		head.Branches = append(head.Branches, Branch{b.Name, null(b.Head), titles[b.Name], at[b.Name]})
	}
	return head
}

// Mark is where an entry is among its versions, and what grows on it.
type Mark struct {
	ID        string   `json:"id" doc:"of the entry"`
	Version   int      `json:"version" doc:"place among its versions, from 1; 0: structure, or hidden"`
	Of        int      `json:"of" doc:"number of its versions, itself included"`
	Versions  []string `json:"versions" doc:"their ids in the order of versions/{entry}; of over 64 those around it"`
	Children  int      `json:"children" doc:"number of entries that are said next, whatever structure is between"`
	Label     string   `json:"label" doc:"cut at 80 bytes; empty: there is none"`
	AmendedBy string   `json:"amendedBy,omitempty" doc:"the amendment that the line of the entry shows"`
	OnHead    bool     `json:"onHead" doc:"the path to the head contains the entry"`
}

// maxMarked bounds the ids in a Mark.
const maxMarked = 64

// Marks returns the marks of the entries with these ordinals, in their order.
func Marks(t *transcript.Tree, ordinals []uint64) []Mark {
	out := make([]Mark, 0, len(ordinals))
	for n := range t.NodesAt(slices.Values(ordinals)) {
		out = append(out, Mark{
			ID: n.ID, Label: n.Label, AmendedBy: n.AmendedBy, OnHead: n.OnPath, Versions: []string{},
		})
	}
	i := 0
	for v := range t.VersionsAt(slices.Values(ordinals)) {
		m := &out[i]
		i++
		m.Version, m.Of, m.Children = v.At+1, len(v.Ordinals), v.Children
		from := max(0, min(v.At-maxMarked/2, len(v.Ordinals)-maxMarked))
		for _, ord := range v.Ordinals[from:min(from+maxMarked, len(v.Ordinals))] {
			m.Versions = append(m.Versions, t.ID(ord))
		}
	}
	return out
}

// NodeOf returns the document of a node.
func NodeOf(n transcript.Node) Node {
	return Node{
		n.ID, null(n.ParentID), n.Ordinal, n.Type, n.Role, n.Preview, n.Label, n.OnPath, n.Time, n.Size, n.AmendedBy,
		n.Hidden, n.Failed,
	}
}

// RowOf returns the document of a row and its node. The node's parent is taken from the row.
func RowOf(t *transcript.Tree, n transcript.Node, r rows.Row) Row {
	if n.ParentID = ""; r.HasParent {
		n.ParentID = t.ID(r.Parent)
	}
	out := Row{
		Node: NodeOf(n), Depth: r.Depth, Indent: r.Indent, Children: r.Children, Version: r.Version,
		Versions: r.Versions, Folded: r.Folded, Hidden: r.Hidden,
	}
	if n.Label != "" {
		if label, ok := t.LabelOf(n.Ordinal); ok && !label.Time.IsZero() {
			out.LabelTime = &label.Time
		}
	}
	return out
}
