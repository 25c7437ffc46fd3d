package parallel

import "sync"

// Pipe takes pieces from a source, works on several of them at once, and returns the results in the order of the
// source. Lanes workers and as many pieces that wait for one: no more than 2 * lanes + 1 pieces are held.
//
//	p := NewPipe(2, next, work)
//	defer p.Close()
//	for r, err := p.Next(); err == nil; r, err = p.Next() { ... }
//
// Next and Close belong to one goroutine; next is called from another, one call at a time, and work from several.
type Pipe[In, Out any] struct {
	order chan *piece[In, Out] // in the order of the source
	stop  chan struct{}
	once  sync.Once
	all   sync.WaitGroup
	err   error // of the source; read after order is closed
}

type piece[In, Out any] struct {
	in   In
	out  Out
	done chan struct{}
}

// NewPipe starts reading ahead. next returns the next piece, or an error, such as io.EOF, that Next returns after
// all earlier pieces; it is not called again.
func NewPipe[In, Out any](lanes int, next func() (In, error), work func(In) Out) *Pipe[In, Out] {
	p := &Pipe[In, Out]{order: make(chan *piece[In, Out], lanes), stop: make(chan struct{})}
	jobs := make(chan *piece[In, Out])
	p.all.Add(lanes + 1)
	for range lanes {
		go func() {
			defer p.all.Done()
			for job := range jobs {
				job.out = work(job.in)
				close(job.done)
			}
		}()
	}
	go func() {
		defer p.all.Done()
		defer close(p.order)
		defer close(jobs)
		p.err = p.feed(next, jobs)
	}()
	return p
}

func (p *Pipe[In, Out]) feed(next func() (In, error), jobs chan<- *piece[In, Out]) error {
	for {
		in, err := next()
		if err != nil {
			return err
		}
		job := &piece[In, Out]{in: in, done: make(chan struct{})}
		select {
		case p.order <- job:
		case <-p.stop:
			return nil
		}
		select {
		case jobs <- job:
		case <-p.stop:
			return nil
		}
	}
}

// Next returns the next result, or the error at which the source ended. After Close it must not be called.
func (p *Pipe[In, Out]) Next() (Out, error) {
	job, ok := <-p.order
	if !ok {
		var none Out
		return none, p.err
	}
	<-job.done
	return job.out, nil
}

// Close ends the work and waits for it; pieces that no one took are dropped. It may be called again.
func (p *Pipe[In, Out]) Close() {
	p.once.Do(func() { close(p.stop) })
	p.all.Wait()
}
