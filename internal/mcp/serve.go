package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxCalls bounds the requests of a stream that are answered at a time. Further lines wait.
const maxCalls = 8

// Serve answers messages, one a line, until the end of in or of the context, and waits for the requests under way. An
// error is one of reading or of writing. A read of in that is under way when the context ends is left alone: it holds a
// line at most, and ends with in.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	st := &stream{s: s, out: out, cancel: cancel, calls: map[string]context.CancelFunc{}}
	defer st.working.Wait()
	defer cancel()
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { failed <- readLines(ctx, in, lines) }()
	free := make(chan struct{}, maxCalls)
	for {
		select {
		case <-ctx.Done():
			return st.error()
		case err := <-failed:
			if err == nil {
				st.working.Wait() // the client wants the answers to all that it has sent
			}
			return errors.Join(err, st.error())
		case line := <-lines:
			select {
			case <-ctx.Done():
				return st.error()
			case free <- struct{}{}:
				st.take(ctx, line, func() { <-free })
			}
		}
	}
}

// readLines sends the lines of in, without those that are empty. One that is too long comes as far as is needed to know
// that.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReader(in)
	for {
		line, err := readLine(r)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a message: %w", err)
		}
	}
}

// readLine returns a line, and of one that is longer than MaxMessage the first MaxMessage + 1 bytes.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece[:min(len(piece), MaxMessage+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// stream is the messages of a client.
type stream struct {
	s       *Server
	cancel  context.CancelFunc // ends the stream
	working sync.WaitGroup     // requests under way

	mu    sync.Mutex
	out   io.Writer
	err   error                         // of the first write that failed: nothing more is written
	calls map[string]context.CancelFunc // of requests under way, by their ids
}

// take begins to answer a message. done is called when it is answered.
func (st *stream) take(ctx context.Context, line []byte, done func()) {
	if len(line) > MaxMessage {
		long := failure(codeRequest, "a message has at most %d bytes", MaxMessage)
		st.write(encode(response{ID: nullID, Error: long}))
		done()
		return
	}
	m, err := parse(line)
	switch {
	case err != nil:
		st.write(encode(response{ID: nullID, Error: err}))
		done()
	case m.ID == nil || m.Method == "":
		if m.Method == "notifications/cancelled" {
			st.cancelled(m.Params)
		}
		done()
	default:
		ctx, end := context.WithCancel(ctx)
		id := string(m.ID)
		st.mu.Lock()
		st.calls[id] = end
		st.mu.Unlock()
		st.working.Go(func() {
			defer done()
			answer := st.s.answer(ctx, m)
			st.mu.Lock()
			delete(st.calls, id)
			st.mu.Unlock()
			if ctx.Err() == nil { // else the client does not wait for it
				st.write(answer)
			}
			end()
		})
	}
}

// cancelled ends the request that a client does not wait for any more.
func (st *stream) cancelled(raw json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if params(raw, &p) != nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if end := st.calls[string(p.RequestID)]; end != nil {
		end()
	}
}

func (st *stream) write(line []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err != nil {
		return
	}
	if _, err := st.out.Write(append(line, '\n')); err != nil {
		st.err = fmt.Errorf("write an answer: %w", err)
		st.cancel()
	}
}

func (st *stream) error() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.err
}
