package crash

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// Receipt records an acknowledged call on a live handle.
func (w *World) Receipt(r coppice.Receipt, err error) error {
	if err == nil && r.Commit != "" {
		w.Acked(r.Seq)
	}
	return err
}

// Live makes a turn on a live handle.
func (w *World) Live(ctx context.Context, h *coppice.Session, text int) error {
	w.made++
	msg := map[string]string{"role": "user", "content": fmt.Sprintf("%d %s", w.made, bytes.Repeat([]byte("x"), text))}
	if _, err := h.Append(ctx, entry.Message(msg)); err != nil {
		return err
	}
	state, err := json.Marshal(map[string]int{"made": w.made})
	if err != nil {
		return err
	}
	r, err := h.Commit(ctx, coppice.Turn{Reason: "turn", State: json.RawMessage(state)})
	if err == nil {
		content := fmt.Appendf(nil, `"content":%q`, msg["content"])
		w.given = append(w.given, Given{Seq: r.Seq, Lines: [][]byte{content}, State: string(state)})
	}
	return w.Receipt(r, err)
}

func playRollback(ctx context.Context, w *World) error {
	h, err := w.Open()
	if err != nil {
		return err
	}
	if err := w.Receipt(h.Rollback(ctx, coppice.Target{Seq: 1}, coppice.WithKey("back"))); err != nil {
		return err
	}
	if err := w.Live(ctx, h, w.text()); err != nil {
		return err
	}
	return h.Close()
}

func playBranches(ctx context.Context, w *World) error {
	h, err := w.Open()
	if err != nil {
		return err
	}
	at := h.Head().Entry
	if err := w.Live(ctx, h, w.text()); err != nil {
		return err
	}
	if err := w.Receipt(h.Branch(ctx, at, &coppice.BranchOptions{Name: "other"})); err != nil {
		return err
	}
	if err := w.Live(ctx, h, w.text()); err != nil {
		return err
	}
	if err := w.Receipt(h.Label(ctx, at, "here")); err != nil {
		return err
	}
	return w.Receipt(h.Switch(ctx, "main", coppice.WithKey("to main")))
}

// two returns two processes on one session.
func (w *World) two(ctx context.Context) (a, b *journal.Journal, err error) {
	if a, err = journal.Open(ctx, w.Config()); err == nil {
		b, err = journal.Open(ctx, w.Config())
	}
	return a, b, err
}

func playKeepBoth(ctx context.Context, w *World) error {
	a, b, err := w.two(ctx)
	for i := 0; i < 2 && err == nil; i++ {
		if err = w.Turn(ctx, a, w.text()); err == nil {
			s := w.Step(b.State(), w.text())
			s.KeepBoth = true
			err = w.Commit(ctx, b, s)
		}
		if err == nil { // a kept turn leaves its writer behind
			err = b.Reload(ctx)
		}
		a, b = b, a
	}
	return err
}

func playConflict(ctx context.Context, w *World) error {
	a, b, err := w.two(ctx)
	if err == nil {
		err = w.Turn(ctx, a, w.text())
	}
	if err != nil {
		return err
	}
	s := w.Step(b.State(), w.text())
	if err := w.Commit(ctx, b, s); !errors.Is(err, journal.ErrConflict) {
		return fmt.Errorf("the second turn got %w", err)
	}
	s.KeepBoth = true
	if err := w.Commit(ctx, b, s); err != nil {
		return err
	}
	if err := w.Turn(ctx, b, w.text()); !errors.Is(err, journal.ErrConflict) {
		return fmt.Errorf("a turn of a handle that is behind got %w", err)
	}
	if err := b.Reload(ctx); err != nil {
		return err
	}
	return w.Turn(ctx, b, w.text())
}

// playFence has a turn that fails permanently: its entry must not be in any history.
func playFence(ctx context.Context, w *World) error {
	a, b, err := w.two(ctx)
	if err != nil {
		return err
	}
	if err := w.Commit(ctx, a, &journal.Step{Reason: "claim", Claim: true}); err != nil {
		return err
	}
	if err := w.Turn(ctx, b, w.text()); !errors.Is(err, journal.ErrFenced) {
		return fmt.Errorf("the fenced turn got %w", err)
	}
	if err := b.Reload(ctx); err != nil {
		return err
	}
	return w.Turn(ctx, b, w.text())
}

// leaveTorn leaves the disk of a process that died during an append.
func leaveTorn(ctx context.Context, w *World) error {
	turn := func(j *journal.Journal) error {
		_, err := j.Commit(ctx, w.Step(j.State(), 300+w.text()))
		return err
	}
	return w.die(ctx, turn, func(m Moment) (out []*vfstest.Image) {
		if m.Op.Kind == "sync" && strings.Contains(m.Op.Name, "/"+layout.Transcript) {
			for img := range m.At.States(vfstest.Spread{Contents: 12, States: 24}, w.seed) {
				out = append(out, img)
			}
		}
		return out
	})
}

// die lets a process lose power during an operation: the world continues with one of the images that pick selects from
// its moments.
func (w *World) die(
	ctx context.Context, do func(j *journal.Journal) error, pick func(m Moment) []*vfstest.Image,
) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	moments, err := w.Track(func() error { return do(j) })
	var left []*vfstest.Image
	for _, m := range moments {
		left = append(left, pick(m)...)
	}
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return errors.New("no such moment")
	}
	w.FS = vfstest.Boot(left[w.Rng.IntN(len(left))])
	return nil
}

func playImages(ctx context.Context, w *World) error {
	h, err := w.Open()
	if err != nil {
		return err
	}
	data := make([]byte, 33<<10)
	for i := range data {
		data[i] = byte(w.Rng.Uint32())
	}
	msg := map[string]any{"role": "user", "content": []any{map[string]string{
		"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(data),
	}}}
	if _, err := h.Append(ctx, entry.Message(msg)); err != nil {
		return err
	}
	if err := w.Receipt(h.Commit(ctx, coppice.Turn{Reason: "turn"})); err != nil {
		return err
	}
	return w.Live(ctx, h, w.text())
}

func playTidy(ctx context.Context, w *World) error {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return err
	}
	if err := j.Tidy(ctx); err != nil {
		return err
	}
	return w.Turn(ctx, j, w.text())
}
