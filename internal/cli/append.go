package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

type appendOptions struct {
	state, key, reason string
	keepBoth           bool
}

func (c *cli) appendCommand() *cobra.Command {
	var o appendOptions
	cmd := &cobra.Command{
		Use:   "append SESSION < messages.jsonl",
		Short: "Append messages and state as one commit",
		Long: `Read messages from standard input, one JSON object per line, and append them and the state from
--state to the session as one commit: either everything is stored or nothing is.

A line is one of: a message in the format of any provider, stored unchanged; a complete entry with
type, id and parentId, stored unchanged as a child of parentId; or an entry without id and parentId
(type "custom", "label", "model_change", ...), which is appended at the head, as messages are.

The session is opened before the input is read. If another writer commits in between, the exit code
is 4 and nothing is stored; with --keep-both the commit is stored on a new branch instead.`,
		Example: `  echo '{"role":"user","content":"hello"}' | coppice append 019a
  coppice append 019a --state state.json --key job-7 < turn.jsonl
  echo '{"step":4}' | coppice append 019a --state -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.append(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.state, "state", "",
		"file with the agent's state as JSON; - = read the state, not messages, from standard input")
	cmd.Flags().StringVar(&o.key, "key", "", "idempotency key: if a commit with this key exists, nothing is stored")
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason for the log, of a-z 0-9 . -; default turn")
	cmd.Flags().BoolVar(&o.keepBoth, "keep-both", false, "on a conflict store the commit on a new branch")
	return cmd
}

func (c *cli) append(ctx context.Context, id string, o appendOptions) error {
	opts := &coppice.SessionOptions{KeepBoth: o.keepBoth}
	return c.withSession(ctx, id, opts, func(st *countedStore, s *coppice.Session) error {
		t, err := c.turn(ctx, o)
		if err != nil {
			return err
		}
		r, err := s.Commit(ctx, t)
		if err != nil {
			return err
		}
		ids := r.IDs
		if r.Repeated {
			ids = nil
		}
		out := api.CommittedOf(r, ids)
		out.IO = st.io()
		if c.json {
			return c.writeJSON(out)
		}
		return c.appendText(out)
	})
}

func (c *cli) appendText(out api.Committed) error {
	for _, w := range out.Warnings {
		c.notef("%s", term.Line(w))
	}
	if out.Repeated {
		return c.textf("seq %d already has this key: nothing was stored", out.Seq)
	}
	text := fmt.Sprintf("seq %d, %s", out.Seq, term.Count(len(out.Entries), "entry", "entries"))
	if out.Kept != "" {
		text += fmt.Sprintf("; another writer committed first: stored on branch %s", out.Kept)
	}
	return c.textf("%s", text)
}

// turn reads the turn to commit.
func (c *cli) turn(ctx context.Context, o appendOptions) (coppice.Turn, error) {
	t := coppice.Turn{Reason: o.reason, Key: o.key}
	if o.state != "" && o.state != "-" {
		raw, err := os.ReadFile(o.state)
		if err != nil {
			return t, err
		}
		if t.State, err = stateOf(o.state, raw); err != nil {
			return t, err
		}
	}
	if f, ok := c.stdin.(*os.File); ok && term.IsTerminal(f) {
		if o.state != "" && o.state != "-" {
			return t, nil // the state is all that there is: messages are not typed
		}
		c.notef("reading messages from the terminal; press Ctrl-D to finish")
	}
	raw, err := readAll(ctx, c.stdin)
	if err != nil {
		return t, err
	}
	if o.state == "-" {
		t.State, err = stateOf("standard input", raw)
		return t, err
	}
	if t.Entries, err = parseLines(raw); err != nil {
		return t, err
	}
	if len(t.Entries) == 0 && o.state == "" {
		return t, usageError("nothing to append: standard input is empty and there is no --state")
	}
	return t, nil
}

func stateOf(name string, raw []byte) (json.RawMessage, error) {
	if err := rawjson.CheckText("state in "+name, raw); err != nil {
		return nil, usageError("%w; nothing was stored", err)
	}
	raw = bytes.TrimSpace(api.TrimBOM(raw))
	if !json.Valid(raw) {
		return nil, fmt.Errorf("state in %s: not a single JSON value", name)
	}
	return raw, nil
}

// maxInput bounds the standard input, in bytes: it is one commit.
const maxInput = 64 << 20

// readAll reads a stream to its end, or until ctx ends.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	type answer struct {
		raw []byte
		err error
	}
	done := make(chan answer, 1) // after ctx the read ends with the process
	go func() {
		raw, err := io.ReadAll(io.LimitReader(r, maxInput+1))
		done <- answer{raw, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-done:
		if len(a.raw) > maxInput {
			return nil, fmt.Errorf("standard input is longer than %d bytes: %w", maxInput, backend.ErrTooLarge)
		}
		if a.err != nil {
			return nil, fmt.Errorf("read standard input: %w", a.err)
		}
		return a.raw, nil
	}
}

// parseLines makes drafts of the JSONL on standard input. One bad line rejects all.
func parseLines(raw []byte) ([]transcript.Draft, error) {
	drafts, err := api.Drafts(raw)
	bad, ok := errors.AsType[*api.LineError](err)
	if ok && errors.Is(err, codec.ErrText) {
		return nil, usageError("line %d of standard input: %w; nothing was stored", bad.Line, bad.Err)
	}
	if ok {
		return nil, fmt.Errorf("line %d of standard input: %w; nothing was stored", bad.Line, bad.Err)
	}
	return drafts, err
}
