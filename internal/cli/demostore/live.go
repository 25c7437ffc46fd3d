package demostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
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

// height returns the tide at Saint-Malo, in metres, some hours after midnight of 20 March 2026: high at 07:31.
func height(hours float64) float64 {
	const mean, m2, n2 = 6.79, 5.1, 0.35
	wave := func(speed float64) float64 { return math.Cos(speed * (hours - 7.52) * math.Pi / 180) }
	return mean + m2*wave(28.984) + n2*wave(28.44)
}

// Live is an agent at work, so that a viewer sees one.
type Live struct {
	Store   *coppice.Store
	Session string // Gauge
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
	base := h.Head()
	call := entry.Call(fmt.Sprintf("gauge_%d", base.Seq), "gauge", map[string]any{
		"station": "saint-malo", "reading": s.Readings,
	})
	measured := fmt.Sprintf("%.2f m", s.Height)
	messages := []map[string]any{
		l.answer("toolUse", s.Readings, entry.Block{Type: "text", Text: fmt.Sprintf("Reading %d.", s.Readings)}, call),
		{
			"role": "toolResult", "toolCallId": call.ID, "toolName": "gauge", "isError": false,
			"content": []entry.Block{{Type: "text", Text: measured}},
		},
		l.answer("stop", s.Readings, entry.Block{Type: "text", Text: fmt.Sprintf(
			"%s and %s. The range so far is %.2f m to %.2f m, as predicted.", measured, s.Trend, s.Lowest, s.Highest)}),
	}
	drafts := make([]transcript.Draft, len(messages))
	for i, m := range messages {
		m["timestamp"] = l.Now().UnixMilli()
		drafts[i] = entry.Message(m)
		if drafts[i].ID, err = transcript.NewID(l.Now(), l.Rand); err != nil {
			return err
		}
	}
	_, err = h.Commit(ctx, coppice.Turn{State: s, Base: base.Commit, Entries: drafts})
	return err
}

// answer is a message of the model, which has read some 250 tokens for each reading. Prices are in dollars for a
// million tokens.
func (l Live) answer(stop string, readings int, content ...entry.Block) map[string]any {
	const output, read, written = 40, 0.3, 15.0
	cached := 2_000 + 250*readings
	cost := (float64(cached)*read + output*written) / 1e6
	return map[string]any{
		"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
		"stopReason": stop, "content": content,
		"usage": map[string]any{
			"input": 0, "output": output, "cacheRead": cached, "cacheWrite": 0, "totalTokens": cached + output,
			"cost": map[string]float64{"total": cost},
		},
	}
}
