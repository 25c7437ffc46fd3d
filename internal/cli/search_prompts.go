package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/searchindex"
)

// searchPrompts lists the prompts that users typed.
func (c *cli) searchPrompts(ctx context.Context, args []string, o searchOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	query := strings.Join(args, " ")
	if _, err := searchindex.Parse(query); err != nil && !o.prefix {
		return usageError("%w", err)
	}
	return c.withStore(ctx, func(st *countedStore) error {
		out := c.array("prompts")
		more, n := false, 0
		err := c.withCurrentIndex(ctx, st, "", func(x *searchindex.Index) error {
			var list []searchindex.Prompt
			var err error
			recall := &searchindex.RecallOptions{Cwd: o.cwd, Prefix: o.prefix, Limit: o.limit}
			list, more, err = x.Recall(ctx, query, recall)
			if err != nil {
				return err
			}
			n = len(list)
			return c.prompts(out, list)
		})
		return out.found(n, more, err)
	})
}

func (c *cli) prompts(out *jsonArray, list []searchindex.Prompt) error {
	sessions := make([]string, len(list))
	for i, p := range list {
		sessions[i] = p.Session
	}
	ids := shortid.Of(sessions, shortid.Least)
	for _, p := range list {
		var err error
		if c.json {
			err = out.add(api.PromptOf(p))
		} else {
			err = c.promptLine(p, ids)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// promptLine writes a prompt for people.
func (c *cli) promptLine(p searchindex.Prompt, ids *shortid.Set) error {
	uses := ""
	if p.Uses > 1 {
		uses = fmt.Sprintf("%d×", p.Uses)
	}
	head := fmt.Sprintf("%s  %-*s %4s  ", term.Clock(p.Time), ids.Width(), ids.Short(p.Session), uses)
	return c.textf("%s%s", c.stdout.Paint(term.Dim, head), term.Cut(term.Line(p.Text), c.stdout.Rest(head, 0)))
}

func (c *cli) rebuild(ctx context.Context) error {
	return c.withStore(ctx, func(st *countedStore) error {
		return c.withIndex(ctx, st, func(x *searchindex.Index, file string) error {
			r, err := c.readIntoIndex(ctx, st, "", x.Rebuild)
			if err != nil {
				return err
			}
			problems := []api.Problem{}
			for _, err := range r.Problems {
				problems = append(problems, api.Describe(err).Problem())
			}
			if c.json {
				err = c.writeJSON(struct {
					Sessions int           `json:"sessions"`
					Entries  int           `json:"entries"`
					File     *string       `json:"file"`
					Problems []api.Problem `json:"problems"`
				}{r.Sessions, r.Entries, orNull(file), problems})
			} else {
				err = c.textf("%s, %s", term.Count(r.Sessions, "session", "sessions"),
					term.Count(r.Entries, "entry", "entries"))
			}
			if err != nil || len(problems) == 0 {
				return err
			}
			if c.json {
				return reported(unreadable(r))
			}
			return unreadable(r)
		})
	})
}
