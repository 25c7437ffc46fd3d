package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/transcript"
)

type eraseOptions struct {
	reason                      string
	states, docs                []string
	everywhere, yes, purgeTrash bool
	trashDir                    string
	prove                       string
}

func (c *cli) eraseCommand() *cobra.Command {
	var o eraseOptions
	cmd := &cobra.Command{
		Use:   "erase SESSION [ENTRY...]",
		Short: "Remove the content of entries for good, or prove that a text is gone",
		Long: `Remove the content of entries for good: texts, images, arguments, amendments, and what quotes them in
previews and titles, in every object of the session, and in the search index and the list of this machine.
A stub stays in the place of each entry, with its id, parent, time and role, on every branch, and a commit
records when and why. It cannot be undone.

--state takes a value out of the state of every commit, and leaves null: POINTER is a JSON pointer such
as /plan/3, and "" is all of the state. --doc takes a small document out of every commit. Both may be
given several times.

Without --yes nothing is changed: the command shows the entries, the objects and requests that it takes,
and which forks and other imports have the entries too; --everywhere erases them there. --purge-trash
removes items of the trash that have any of it. If the command breaks off, run it again.

Not reached are quotations in other entries, other values of states, exported files, backups, the file that
was imported, and older versions that an object store keeps.

--prove TEXT reads every object of the store, and search index, list and trash of this machine, and lists
those that have the text, also where it is compressed or in base64; then the exit code is 1. With - the
text is read from standard input, and is not in the history of the shell.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("prove") {
				return cobra.NoArgs(cmd, args)
			}
			if len(o.states)+len(o.docs) > 0 {
				return cobra.MinimumNArgs(1)(cmd, args)
			}
			return cobra.MinimumNArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("prove") {
				if !alone(cmd, "prove") {
					return usageError("--prove goes with no other flag of this command")
				}
				return c.prove(cmd.Context(), o.prove)
			}
			return c.withStore(cmd.Context(), func(st *countedStore) error {
				return c.eraseEntries(cmd.Context(), st, args[0], args[1:], o)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.yes, "yes", false, "erase; without it nothing is changed")
	flags.StringVar(&o.reason, "reason", "", "is kept with each stub; at most 256 bytes, and nothing of what is erased")
	flags.StringArrayVar(&o.states, "state", nil, "erase the value at this `POINTER` into the state, in every commit")
	flags.StringArrayVar(&o.docs, "doc", nil, "erase the small document of this `NAME`, in every commit")
	flags.BoolVar(&o.everywhere, "everywhere", false, "also in forks, other imports of the file, and other copies")
	flags.BoolVar(&o.purgeTrash, "purge-trash", false, "remove items of the trash that have the entries")
	flags.StringVar(&o.trashDir, "trash-dir", "", "folder of the trash; default: trash below $COPPICE_STATE")
	flags.StringVar(&o.prove, "prove", "", "look for a text of at least 4 bytes in everything; - = standard input")
	return cmd
}

func (c *cli) eraseEntries(
	ctx context.Context, st *countedStore, word string, entries []string, o eraseOptions,
) error {
	id, err := st.resolve(ctx, word)
	if err != nil {
		return err
	}
	opts := &coppice.EraseOptions{
		States: o.states, Docs: o.docs, Reason: o.reason, DryRun: !o.yes, Everywhere: o.everywhere,
	}
	var r coppice.Erased
	erase := func() (_ []string, err error) {
		r, err = st.Erase(ctx, id, entries, opts)
		return nil, err
	}
	if o.yes {
		act := audit.Act{Act: "erase", Session: id, IDs: slices.Concat(entries, o.states, o.docs)}
		err = c.recorded(ctx, st, act, erase)
	} else {
		_, err = erase()
	}
	if err != nil {
		return err
	}
	out := api.ErasedOf(r, !o.yes)
	if o.yes {
		c.unindex(ctx, st, append(api.ErasedIn(r), id)...)
	}
	named, err := c.eraseTrash(ctx, st, &out, o)
	if err != nil {
		return fmt.Errorf("the entries are erased in the store, and the trash may have them: %w", err)
	}
	if c.json {
		return c.writeJSON(out)
	}
	return c.showErased(&out, named, o)
}

// eraseTrash finds the items of the trash that have what an erasure names, and removes them if that is asked for. It
// returns the entries, as they are now.
func (c *cli) eraseTrash(
	ctx context.Context, st *countedStore, out *api.Erased, o eraseOptions,
) (named []transcript.Entry, err error) {
	t, err := c.trash(o.trashDir)
	if err != nil {
		return nil, err
	}
	s, err := st.Open(ctx, out.Session, readOnly())
	if err != nil {
		return nil, err
	}
	defer func() { err = closeAfter(s, err) }()
	ids := slices.Concat(out.Entries, out.Already)
	if len(ids) > 0 {
		for e, err := range s.Entries(ctx, ids...) {
			if err != nil {
				return nil, err
			}
			named = append(named, e)
		}
	}
	items, err := t.Having(ctx, s, ids, &coppice.EraseOptions{States: o.states, Docs: o.docs})
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		out.Trash = append(out.Trash, it.Name)
	}
	if !o.yes || !o.purgeTrash {
		return named, nil
	}
	out.Purged = len(items) > 0
	return named, t.Remove(items...)
}

// showErased reports an erasure to people.
func (c *cli) showErased(out *api.Erased, named []transcript.Entry, o eraseOptions) error {
	done := map[string]bool{}
	for _, id := range out.Already {
		done[id] = true
	}
	for i := range named {
		if err := c.showErasedEntry(&named[i], done[named[i].ID]); err != nil {
			return err
		}
	}
	if err := c.showErasedPaths(out, o); err != nil {
		return err
	}
	verb := "erased"
	if out.DryRun {
		verb = "would erase"
	}
	io := out.IO
	requests := io.Get + io.Put + io.Append + io.Stat + io.List + io.Delete
	if err := c.textf("%s %s: %s written again (%s), %s removed, %s", verb,
		erasedCount(len(out.Entries)+len(out.States)+len(out.Docs), o), term.Count(out.Written, "object", "objects"),
		term.Size(out.Bytes), term.Count(out.Removed, "object", "objects"),
		term.Count(int(requests), "request", "requests")); err != nil {
		return err
	}
	for _, other := range out.Others {
		note := "; --everywhere erases them there"
		if o.everywhere {
			note = ", " + verb + " there too"
		}
		n := len(other.Entries) + len(other.States) + len(other.Docs)
		err := c.textf("session %s has %s of them%s", shortid.One(other.Session), erasedCount(n, o), note)
		if err != nil {
			return err
		}
	}
	if len(out.Trash) > 0 {
		note := "; --purge-trash removes it"
		if out.Purged {
			note = ": removed"
		}
		if err := c.textf("in the trash: %s%s", strings.Join(out.Trash, ", "), note); err != nil {
			return err
		}
	}
	if out.DryRun {
		c.notef("nothing was changed: --yes erases")
		return nil
	}
	c.notef("not reached: exported files, backups, the imported file itself, older versions that an object store keeps")
	return nil
}

// erasedCount is a number of what is erased in words.
func erasedCount(n int, o eraseOptions) string {
	if len(o.states)+len(o.docs) > 0 {
		return term.Count(n, "part", "parts")
	}
	return term.Count(n, "entry", "entries")
}

// showErasedPaths lists values of states and documents, and those that no commit has.
func (c *cli) showErasedPaths(out *api.Erased, o eraseOptions) error {
	show := func(what string, asked, met []string) error {
		for _, name := range asked {
			note := ""
			if !slices.Contains(met, name) {
				note = ": no commit has it"
			}
			if err := c.textf("%s %q%s", what, name, note); err != nil {
				return err
			}
		}
		return nil
	}
	if err := show("state", o.states, out.States); err != nil {
		return err
	}
	return show("document", o.docs, out.Docs)
}

func (c *cli) showErasedEntry(e *transcript.Entry, already bool) error {
	note := ""
	if already {
		note = "  (erased before)"
	}
	row := transcript.RowOf(transcript.Line{Type: e.Type, ID: e.ID, Raw: e.Raw}, codec.NoParent)
	head := fmt.Sprintf("%s  %-9s  ", shortid.One(e.ID), row.Role)
	text := term.Cut(term.Line(row.Preview), c.stdout.Rest(head, len(note)))
	return c.textf("%s%s%s", c.stdout.Paint(term.Dim, head), text, note)
}
