package jsonl

// longBatch is the size in bytes above which a batch is processed alone.
const longBatch = 4 * BatchSize

// Gate stops a goroutine that reads ahead while a long batch is in use, so that only one of many workers holds a line
// of many megabytes. The reading goroutine calls Wait and Out; the consumer of the results calls Back and Close.
type Gate struct {
	out    chan struct{} // full while a long batch is in use
	closed chan struct{}
}

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{out: make(chan struct{}, 1), closed: make(chan struct{})} }

// Wait waits until no long batch is in use.
func (g *Gate) Wait() {
	select {
	case g.out <- struct{}{}:
		<-g.out
	case <-g.closed:
	}
}

// Out records that a batch of this size was read. Wait must be called before.
func (g *Gate) Out(size int) {
	if size > longBatch {
		g.out <- struct{}{}
	}
}

// Back records that the batch is no longer in use.
func (g *Gate) Back(size int) {
	if size > longBatch {
		<-g.out
	}
}

// Close ends all waiting, now and later. It must be called once.
func (g *Gate) Close() { close(g.closed) }
