package term

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is how long something may take before a progress bar appears.
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

// Progress returns the progress of work on total bytes or total things; -1 = unknown.
func (s *Screen) Progress(what string, total int64, bytes bool, now func() time.Time) *Progress {
	if !s.tty {
		return nil
	}
	return &Progress{s: s, what: what, total: total, bytes: bytes, now: now, begun: now()}
}

// Add records that n more are done.
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

// text says what is done. The rate is that of the whole time, which begins before the bar appears: the bar itself
// knows only when it was made, and would take all that was done before for the work of an instant.
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

// Reach records how many things are done, and how many there are by now.
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

// note drops an error of drawing: a bar that cannot be drawn is no reason to stop.
func (p *Progress) note(error) {}
