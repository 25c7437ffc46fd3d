package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

type showOptions struct {
	entry     string
	all, full bool
	last      int
	original  bool
}

// data reports whether entries that are data of programs are printed.
func (o *showOptions) data() bool { return o.full || o.all || o.entry != "" }

func (c *cli) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show SESSION [ENTRY]",
		Short: "Print the conversation, or one entry",
		Long: `Print the conversation on the current path, or one entry in full. With --json the document contains
the lines of the entries, with their images. Amended entries have their newest text, and are marked.
Without --full, --all or ENTRY it leaves out what programs keep in a session that has no words.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				o.entry = args[1]
			}
			return c.show(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "every entry of every branch, in the order of appending")
	cmd.Flags().BoolVar(&o.full, "full", false,
		"include complete tool results and notes, the model's thinking, and entries without words")
	cmd.Flags().BoolVar(&o.original, "original", false, "the entries as they were appended, without amendments")
	cmd.Flags().IntVar(&o.last, "last", 0, "only the newest N entries of the path; 0 = all")
	return cmd
}

func (c *cli) show(ctx context.Context, id string, o showOptions) error {
	if o.last < 0 || o.all && (o.last > 0 || o.entry != "") || o.entry != "" && o.last > 0 {
		return usageError("use only one of ENTRY, --all and --last N, which is 0 or more")
	}
	return c.withSession(ctx, id, pastDamage(), func(_ *countedStore, s *coppice.Session) error {
		ids := []string{o.entry}
		if o.entry == "" && !o.all {
			var err error
			if ids, err = c.onPath(ctx, s, o); err != nil {
				return err
			}
		}
		if o.all {
			ids = nil
		}
		add, end, err := c.sink(ctx, s, o)
		if err != nil {
			return err
		}
		if len(ids) == 0 && !o.all {
			return end(damageOf(s))
		}
		read := s.Entries
		if o.original {
			read = s.Originals
		}
		for e, err := range read(ctx, ids...) {
			if err != nil {
				return end(err)
			}
			if err := add(e); err != nil {
				return end(err)
			}
		}
		return end(cmp.Or(lost(s), damageOf(s)))
	})
}

// onPath returns the ids on the current path, root first; o.last > 0 bounds the number of those that are printed.
func (c *cli) onPath(ctx context.Context, s *coppice.Session, o showOptions) ([]string, error) {
	var ids []string
	if o.last > 0 {
		for e, err := range s.Path(ctx, "") {
			if err != nil && damageOf(s) != nil {
				break // all that is intact came before it
			}
			if err != nil {
				return nil, err
			}
			if c.json || o.data() || term.HasWords(e) {
				ids = append(ids, e.ID)
			}
			if len(ids) == o.last {
				break
			}
		}
		slices.Reverse(ids)
		return ids, nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return nil, err
	}
	for n := range t.Path(t.Head()) {
		if !n.Hidden || o.original {
			ids = append(ids, n.ID)
		}
	}
	return ids, nil
}

// sink returns functions that write entries, for people or as JSON, and that end the output.
func (c *cli) sink(
	ctx context.Context, s *coppice.Session, o showOptions,
) (add func(transcript.Entry) error, end func(error) error, err error) {
	if c.json {
		out := c.array("entries")
		return func(e transcript.Entry) error { return out.add(e.Raw) }, out.end, nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return nil, nil, err
	}
	talk := term.NewConversation(c.stdout, term.ConversationOptions{
		Full: o.full || o.entry != "", Data: o.data(), Short: term.EntryIDs(t).Short,
		Label: func(id string) string {
			n, _ := t.Node(id)
			return term.Marks(n, o.original)
		},
	})
	if o.entry == "" {
		if err := term.Title(c.stdout, s.Info(), t); err != nil {
			return nil, nil, err
		}
	}
	return talk.Add, func(err error) error { return err }, nil
}
