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
		o := []progressbar.Option{
			progressbar.OptionSetWriter(p.s.w), progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowBytes(p.bytes), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true),
		}
		if !p.bytes {
			o = append(o, progressbar.OptionShowCount())
		}
		p.bar = progressbar.NewOptions64(p.total, o...)
		n = p.done
	}
	p.note(p.bar.Add64(n))
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
