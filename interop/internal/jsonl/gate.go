package jsonl

// longBatch is from how many bytes on a batch goes alone.
const longBatch = 4 * BatchSize

// Gate holds back who reads ahead while a long batch is out, so that of many workers only one holds a line of
// many megabytes. Wait and Out belong to the one who reads, Back and Close to the one who takes the results.
type Gate struct {
	out    chan struct{} // full while a long batch is out
	closed chan struct{}
}

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{out: make(chan struct{}, 1), closed: make(chan struct{})} }

// Wait waits while a long batch is out.
func (g *Gate) Wait() {
	select {
	case g.out <- struct{}{}:
		<-g.out
	case <-g.closed:
	}
}

// Out says that a batch of so many bytes was read, after Wait.
func (g *Gate) Out(size int) {
	if size > longBatch {
		g.out <- struct{}{}
	}
}

// Back says that the batch is not held any more.
func (g *Gate) Back(size int) {
	if size > longBatch {
		<-g.out
	}
}

// Close lets go of who waits, for good. It is called once.
func (g *Gate) Close() { close(g.closed) }
