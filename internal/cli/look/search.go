package look

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/cli/draw"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/screen"
)

type searchOptions struct {
	session, cwd string
	limit        int
}

// Search is `coppice search`.
func Search(a *program.App) *cobra.Command {
	c := &cli{a}
	var o searchOptions
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find entries by what they say, in all sessions and branches",
		Long: `Find entries whose text holds every word of TEXT, whatever the case; words in quotes must stand beside each other.
Sessions with the newest activity come first. It reads the transcripts from end to end.`,
		Example: "  coppice search flaky timezone\n  coppice search --cwd . 'database migration'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.search(cmd.Context(), args, o)
		},
	}
	cmd.Flags().StringVar(&o.session, "session", "", "only this session")
	cmd.Flags().StringVar(&o.cwd, "cwd", "", "only sessions of this working directory")
	cmd.Flags().IntVar(&o.limit, "limit", 50, "at most so many; 0 = all")
	_ = cmd.RegisterFlagCompletionFunc("session", c.SessionIDs)
	return cmd
}

// match is an entry that was found, as the JSON shows it.
type match struct {
	Session string    `json:"session"`
	Title   string    `json:"title"`
	Entry   string    `json:"entry"`
	Ordinal uint64    `json:"ordinal"`
	Type    string    `json:"type"`
	Role    string    `json:"role"`
	Time    time.Time `json:"time"`
	Snippet string    `json:"snippet"`
}

var errEnough = errors.New("enough")

func (c *cli) search(ctx context.Context, args []string, o searchOptions) error {
	var words []string
	for _, arg := range args {
		if word := strings.Join(strings.Fields(strings.ToLower(arg)), " "); word != "" {
			words = append(words, word)
		}
	}
	switch {
	case len(words) == 0:
		return program.Usage("no words to look for")
	case o.limit < 0:
		return program.Usage("--limit %d: want 0 or more", o.limit)
	}
	var err error
	if o.cwd, err = program.Absolute(o.cwd); err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		sums, err := c.searched(ctx, st, o)
		if err != nil {
			return err
		}
		var total int64
		for _, s := range sums {
			total += s.Bytes
		}
		bar := c.Err.Progress("searching", total, true, c.Now)
		out := c.Array("matches")
		n, last := 0, ""
		found := func(m match) error {
			bar.Close()
			if n++; n > o.limit && o.limit > 0 {
				return errEnough
			}
			if c.JSON {
				return out.Add(m)
			}
			first := m.Session != last
			last = m.Session
			return c.matchText(m, first)
		}
		for _, sum := range sums {
			err := searchSession(ctx, st, sum, words, bar, found)
			switch {
			case errors.Is(err, errEnough):
				bar.Close()
				return c.searchEnd(out, n-1, true, nil)
			case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
			case err != nil:
				bar.Close()
				return c.searchEnd(out, n, false, err)
			}
		}
		bar.Close()
		return c.searchEnd(out, n, false, nil)
	})
}

func (c *cli) searchEnd(out *program.Array, n int, more bool, err error) error {
	switch {
	case c.JSON:
		return out.End(err)
	case err != nil:
		return err
	case more:
		c.Note("there are more; --limit shows them")
	case n == 0:
		c.Note("nothing found")
	}
	return nil
}

// searched gives the sessions that are to be read, newest activity first.
func (c *cli) searched(ctx context.Context, st *program.Store, o searchOptions) ([]checkpoint.Summary, error) {
	if o.session != "" {
		s, err := st.Session(ctx, o.session, program.Reading())
		if err != nil {
			return nil, err
		}
		return []checkpoint.Summary{s.Info()}, s.Close()
	}
	var sums []checkpoint.Summary
	for s, err := range st.List(ctx, coppice.ListOptions{Cwd: o.cwd}) {
		if err != nil {
			return nil, err
		}
		sums = append(sums, s)
	}
	return sums, nil
}

func searchSession(ctx context.Context, st *program.Store, sum checkpoint.Summary, words []string, bar *screen.Progress, found func(match) error) (err error) {
	s, err := st.Open(ctx, sum.ID, program.Reading())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return err
		}
		bar.Add(int64(len(e.Raw)) + 1)
		text, role := draw.Said(e)
		snippet, ok := snippetOf(text, words)
		if !ok {
			continue
		}
		if err := found(match{sum.ID, program.Title(sum), e.ID, e.Ordinal, e.Type, role, e.Time, snippet}); err != nil {
			return err
		}
	}
	return nil
}

const (
	snippetBefore = 40 // bytes of text before what was found
	snippetBytes  = 160
)

// snippetOf gives the place of the first word in a text that holds all of them. A word with a space in it
// is several, with any white space between.
func snippetOf(text string, words []string) (string, bool) {
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, " ") }) {
		text = strings.Join(strings.Fields(text), " ")
	}
	low := strings.ToLower(text)
	for _, w := range words {
		if !strings.Contains(low, w) {
			return "", false
		}
	}
	at := min(strings.Index(low, words[0]), len(text)) // case may change the length of a text
	from, to := max(0, at-snippetBefore), min(len(text), at-snippetBefore+snippetBytes)
	to = max(to, min(len(text), at+len(words[0])))
	snippet := screen.Line(strings.ToValidUTF8(text[from:to], ""))
	if from > 0 {
		snippet = "…" + snippet
	}
	if to < len(text) {
		snippet += "…"
	}
	return snippet, true
}

// matchText shows a match below the name of its session, which is said once.
func (c *cli) matchText(m match, first bool) error {
	if first {
		name := m.Title
		if name != "" {
			name += "  "
		}
		if err := c.Text("%s%s", c.Out.Paint(screen.Bold, name), c.Out.Paint(screen.Yellow, m.Session)); err != nil {
			return err
		}
	}
	head := fmt.Sprintf("  %s  %s  %-9s ", screen.Line(m.Entry), screen.Clock(m.Time), draw.Who(m.Type, m.Role))
	left := 0
	if w := c.Out.Width(); w > 0 {
		left = max(20, w-screen.Columns(head))
	}
	return c.Text("%s%s", c.Out.Paint(screen.Dim, head), screen.Cut(m.Snippet, left))
}
