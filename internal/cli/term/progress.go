package term

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is the time before a progress bar appears.
const patience = time.Second

// Progress is a bar that appears only on a terminal, and only after a second. A nil Progress does
// nothing.
type Progress struct {
	s     *Screen
	what  string
	total int64
	bytes bool
	now   func() time.Time
	begun time.Time
	done  int64
	bar   *progressbar.ProgressBar
}

// Progress returns a progress bar for work on total bytes or total items; -1 = unknown.
func (s *Screen) Progress(what string, total int64, bytes bool, now func() time.Time) *Progress {
	if !s.tty {
		return nil
	}
	return &Progress{s: s, what: what, total: total, bytes: bytes, now: now, begun: now()}
}

// Add adds n to the work done.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.done += n
	if p.bar == nil {
		if p.now().Sub(p.begun) < patience {
			return
		}
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.s.w), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		)
		n = p.done
	}
	p.bar.Describe(p.text())
	p.note(p.bar.Add64(n))
}

// text describes the work done. The rate is that of the whole time, which begins before the bar appears: the bar itself
// only knows when it was made, and would attribute all earlier work to that instant.
func (p *Progress) text() string {
	number := func(n int64) string { return Number(uint64(max(n, 0))) }
	if p.bytes {
		number = Size
	}
	text := p.what + "  " + number(p.done)
	if p.total > 0 {
		text += " of " + number(p.total)
	}
	if elapsed := p.now().Sub(p.begun); p.bytes && elapsed >= patience {
		text += ", " + Size(int64(float64(p.done)/elapsed.Seconds())) + "/s"
	}
	return text
}

// Reach sets the work done, and the total known by now.
func (p *Progress) Reach(done, total int64) {
	if p == nil {
		return
	}
	if p.total = total; p.bar != nil {
		p.bar.ChangeMax64(total)
	}
	p.Add(done - p.done)
}

// Close removes the bar.
func (p *Progress) Close() {
	if p != nil && p.bar != nil {
		p.note(p.bar.Clear())
	}
}

// note ignores an error of drawing: a bar that cannot be drawn is no reason to stop.
func (p *Progress) note(error) {}
