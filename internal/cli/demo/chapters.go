package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/cli/importer"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
)

// What happens in the demo. The entry that is edited is one of the bundled session.
const (
	asked    = "One more thing: what would it take to ship this for Windows as well?"
	answered = "Little: the station files are embedded, so one `GOOS=windows go build` and a release step. I would do it in a branch."
	edited   = "cacbd4da"
	instead  = "I gave it to Fiona, who will type them in. She would rather have a web form than a command. Can we do that?"
	replied  = "Yes: the checks are a package of their own already. I would serve one page and call them on every change."

	stateThen = `{"turn":1,"plan":["windows release"],"spent":{"tokens":12345678901234567890,"usd":0.30},"note":"größer als 2^53, and exact"}`
	stateNow  = `{"turn":2,"plan":["web form","release"],"spent":{"tokens":12345678901234569999,"usd":0.41},"note":null}`
)

func (d *story) importIt(ctx context.Context) error {
	if err := d.chapter("Import a coding agent's session, as it comes"); err != nil {
		return err
	}
	var res importer.Result
	err := d.do("import", func() (err error) {
		src := importer.FromBytes("the bundled session", session.JSONL)
		res, err = importer.Import(ctx, d.st.Store, src, importer.Options{Again: true, Now: d.Now(), Rand: rand.Reader})
		return err
	})
	if err != nil {
		return err
	}
	d.id, d.told.Entries = res.Session, res.Entries
	return d.say("session %s: %s of %s, pi v3, every byte kept", d.id,
		term.Count(res.Entries, "entry", "entries"), term.Size(int64(len(session.JSONL))))
}

func (d *story) resume(ctx context.Context) error {
	if err := d.chapter("Resume it, as on a fresh machine"); err != nil {
		return err
	}
	var con transcript.Context
	err := d.do("resume", func() (err error) {
		if d.s, err = d.st.Store.Open(ctx, d.id, nil); err != nil {
			return err
		}
		con, err = d.s.Context(ctx)
		return err
	})
	if err != nil {
		return err
	}
	d.told.Context = len(con.Messages)
	io := d.steps[len(d.steps)-1].IO
	return d.say("%s ready for the model (%s): %s, %s; the history behind it was not read",
		term.Count(len(con.Messages), "message", "messages"), con.Settings.Model,
		term.Count(io.Get, "read", "reads"), term.Size(io.BytesRead))
}

func (d *story) tree(ctx context.Context) error {
	if err := d.chapter("The tree: ● is the current path, ○ are other versions; long runs are cut"); err != nil {
		return err
	}
	var t *transcript.Tree
	err := d.do("tree", func() (err error) {
		t, err = d.s.Tree(ctx)
		return err
	})
	if err != nil || d.JSON {
		return err
	}
	return term.Tree(d.Out, t, term.TreeOptions{Filter: transcript.FilterNoTools, Ends: 2})
}

func (d *story) turn(ctx context.Context) error {
	if err := d.chapter("Append a turn: messages and the agent's state, one commit"); err != nil {
		return err
	}
	var r coppice.Receipt
	err := d.do("append a turn", func() error {
		if _, err := d.s.Append(ctx, entry.User(asked), entry.Assistant(answered)); err != nil {
			return err
		}
		var err error
		r, err = d.s.Commit(ctx, coppice.Turn{State: json.RawMessage(stateThen)})
		return err
	})
	if err != nil {
		return err
	}
	d.told.Restored.Seq = r.Seq
	return errors.Join(
		d.say("seq %d: %s, and the state", r.Seq, term.Count(r.Entries, "entry", "entries")),
		d.say("state %s", d.Out.Paint(term.Cyan, stateThen)))
}

func (d *story) edit(ctx context.Context) error {
	if err := d.chapter("Edit a message from an hour before: a new branch grows, the old one stays"); err != nil {
		return err
	}
	err := d.do("edit an earlier message", func() error {
		if _, err := d.s.Edit(ctx, edited, entry.User(instead)); err != nil {
			return err
		}
		if _, err := d.s.Append(ctx, entry.Assistant(replied)); err != nil {
			return err
		}
		_, err := d.s.Commit(ctx, coppice.Turn{State: json.RawMessage(stateNow)})
		return err
	})
	if err != nil {
		return err
	}
	t, err := d.s.Tree(ctx)
	if err != nil {
		return err
	}
	versions, _ := t.Siblings(edited)
	for i, v := range versions {
		mark := "○"
		if v.OnPath {
			mark = d.Out.Paint(term.Green, "●")
		}
		if err := d.say("%s ‹%d/%d› %s", mark, i+1, len(versions), term.Line(v.Preview)); err != nil {
			return err
		}
	}
	return d.say("state %s", d.Out.Paint(term.Cyan, stateNow))
}

func (d *story) rollback(ctx context.Context) error {
	seq := d.told.Restored.Seq
	if err := d.chapter(fmt.Sprintf("Roll back to seq %d: state, context and head, exactly", seq)); err != nil {
		return err
	}
	then, err := d.s.At(ctx, coppice.Target{Seq: seq})
	if err != nil {
		return err
	}
	var r coppice.Receipt
	err = d.do("roll back", func() (err error) {
		r, err = d.s.Rollback(ctx, coppice.Target{Seq: seq})
		return err
	})
	if err != nil {
		return err
	}
	if err := d.compare(ctx, then); err != nil {
		return err
	}
	t := d.told.Restored
	sum := sha256.Sum256([]byte(stateThen))
	if err := d.say("state: %d bytes, equal byte for byte to those of seq %d (sha256 %x…)", t.StateBytes, seq, sum[:6]); err != nil {
		return err
	}
	return d.say("context and head: equal; the line that was left is branch %q", r.Kept)
}

// compare holds what is there now against what was there then, in a session that is opened anew.
func (d *story) compare(ctx context.Context, then *coppice.View) (err error) {
	s, err := d.st.Store.Open(ctx, d.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	now, err := s.At(ctx, coppice.Target{})
	if err != nil {
		return err
	}
	was, err := then.Context(ctx)
	if err != nil {
		return err
	}
	is, err := now.Context(ctx)
	if err != nil {
		return err
	}
	state, r := now.Document().State, &d.told.Restored
	r.StateBytes = len(state)
	r.StateEqual = string(state) == stateThen && bytes.Equal(state, then.Document().State)
	r.Head = is.Leaf == was.Leaf && s.Head().Entry == then.Commit().Entry
	r.Context = sameMessages(was.Messages, is.Messages)
	if !r.StateEqual || !r.Head || !r.Context {
		return errNotRestored
	}
	return nil
}

func sameMessages(a, b []transcript.Message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Entry != b[i].Entry || !bytes.Equal(a[i].Raw, b[i].Raw) {
			return false
		}
	}
	return true
}

func (d *story) verify(ctx context.Context) error {
	if err := d.chapter("Verify: every checksum of every object"); err != nil {
		return err
	}
	if err := d.s.Close(); err != nil {
		return err
	}
	var r coppice.Report
	err := d.do("verify", func() (err error) {
		r, err = d.st.Verify(ctx, d.id, true)
		return err
	})
	if err != nil {
		return err
	}
	if d.told.Problems = len(r.Problems); len(r.Problems) > 0 {
		return r.Problems[0]
	}
	return d.say("%s, %s: all is well", term.Count(r.Objects, "object", "objects"), term.Size(r.Bytes))
}
