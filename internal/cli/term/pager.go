package term

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// ErrPagerClosed reports that the user left the pager before the end of the output: no failure of the command.
var ErrPagerClosed = errors.New("the pager was closed")

// Page sends later output through a pager, the program and its arguments as in $PAGER, once it is longer than the
// height of the terminal. It does nothing if the screen is not a terminal or pager is "" or "cat". The returned
// function waits until the user has left the pager, and must be called.
func (s *Screen) Page(pager string, getenv func(string) string) (end func() error) {
	f := s.File()
	words := strings.Fields(pager)
	if f == nil || len(words) == 0 || words[0] == "cat" {
		return func() error { return nil }
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return func() error { return nil }
	}
	p := &pagerWriter{out: f, words: words, lines: height - 1, less: getenv("LESS") == ""}
	s.w = p
	return func() error {
		s.w = f
		return p.end()
	}
}

// pagerWriter holds a screenful; longer output is sent to the pager.
type pagerWriter struct {
	out   *os.File
	words []string
	lines int  // height of the terminal; math.MaxInt = no pager
	less  bool // $LESS is not set
	held  bytes.Buffer
	cmd   *exec.Cmd
	in    io.WriteCloser
}

func (p *pagerWriter) Write(b []byte) (int, error) {
	if p.cmd == nil {
		p.held.Write(b)
		if p.lines == math.MaxInt {
			return len(b), p.flush()
		}
		if bytes.Count(p.held.Bytes(), []byte("\n")) < p.lines {
			return len(b), nil
		}
		if p.start() != nil { // the program does not exist: write without it
			p.lines = math.MaxInt
			return len(b), p.flush()
		}
		return len(b), p.send(p.held.Bytes())
	}
	return len(b), p.send(b)
}

func (p *pagerWriter) start() error {
	p.cmd = exec.Command(p.words[0], p.words[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, os.Stderr
	p.cmd.Env = os.Environ()
	if p.less {
		p.cmd.Env = append(p.cmd.Env, "LESS=FRX")
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cmd = nil
		return err
	}
	return nil
}

func (p *pagerWriter) send(b []byte) error {
	if _, err := p.in.Write(b); err != nil {
		return ErrPagerClosed // its standard input is a pipe, which fails in no other way
	}
	return nil
}

// flush writes the held output to the terminal.
func (p *pagerWriter) flush() error {
	_, err := p.held.WriteTo(p.out)
	return err
}

func (p *pagerWriter) end() error {
	if p.cmd == nil {
		return p.flush()
	}
	if err := p.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("end the pager: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("pager %s: %w", p.words[0], err)
	}
	return nil
}
