package demostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// reading is how far one reading of the gauge is from the one before, in the time of the session.
const reading = 10 * time.Minute

// gaugeState is the state of the agent that watches a gauge.
type gaugeState struct {
	Goal     string  `json:"goal"`
	Readings int     `json:"readings"`
	Height   float64 `json:"height"` // the newest one, in metres above chart datum
	Trend    string  `json:"trend"`
	Highest  float64 `json:"highest"`
	Lowest   float64 `json:"lowest"`
}

// next returns the state after one more reading.
func (s gaugeState) next() gaugeState {
	was := s.Height
	s.Height = math.Round(height(float64(s.Readings)*reading.Hours())*100) / 100
	s.Trend = "rising"
	if s.Height < was {
		s.Trend = "falling"
	}
	if s.Readings == 0 {
		s.Highest, s.Lowest = s.Height, s.Height
	}
	s.Highest, s.Lowest = max(s.Highest, s.Height), min(s.Lowest, s.Height)
	s.Readings++
	return s
}

// gauge begins the session that Live continues.
func (d *demo) gauge(ctx context.Context) error {
	d.clock.wait(5 * time.Minute)
	w, err := d.begin("", coppice.SessionOptions{Title: "watch the gauge at Saint-Malo"})
	if err != nil {
		return err
	}
	d.content.Gauge = w.h.ID()
	const goal = "Watch the gauge at Saint-Malo, and compare each reading with what tideline predicts."
	drafts, err := w.drafts(prompt(goal))
	if err == nil {
		first := gaugeState{Goal: clip(goal)}
		_, err = w.h.Commit(ctx, coppice.Turn{State: first, Reason: reasonPrompt, Entries: drafts})
	}
	return err
}

// Live is an agent at work, so that a viewer sees one.
type Live struct {
	Store   *coppice.Store
	Session string // Content.Gauge
	Turns   int    // that it commits, each a call, its result and an answer
	Every   time.Duration
	Rand    io.Reader // of the ids of its entries
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
}

// Run commits its turns, one at a time, until there were enough or the context is done. Each builds on the head and
// the state that the session has then, so that a viewer may move them. A turn that meets a conflict is dropped.
func (l Live) Run(ctx context.Context) error {
	for range l.Turns {
		select {
		case <-ctx.Done():
			return nil
		case <-l.After(l.Every):
		}
		err := l.turn(ctx)
		switch {
		case err == nil, errors.Is(err, coppice.ErrConflict):
		case ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("the agent of the demo: %w", err)
		}
	}
	return nil
}

func (l Live) turn(ctx context.Context) (err error) {
	h, err := l.Store.Open(ctx, l.Session, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var s gaugeState
	if err := h.State(&s); err != nil {
		return err
	}
	s = s.next()
	c, base := &clock{}, h.Head()
	c.set(l.Now())
	w := writerOn(h, c, l.Rand)
	w.called = int(min(base.Seq, math.MaxInt32)) // no call has the id of an earlier one
	w.used += 250 * int64(s.Readings)
	read := w.call("gauge", args{"station": "saint-malo", "reading": s.Readings})
	drafts, err := w.drafts(
		w.answer("", fmt.Sprintf("Reading %d.", s.Readings), read),
		result(read, fmt.Sprintf("%.2f m", s.Height), nil),
		w.answer("", fmt.Sprintf("%.2f m and %s. The range so far is %.2f m to %.2f m, as predicted.",
			s.Height, s.Trend, s.Lowest, s.Highest)),
	)
	if err == nil {
		_, err = h.Commit(ctx, coppice.Turn{State: s, Base: base.Commit, Entries: drafts})
	}
	return err
}
