package s3test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Credentials of the servers that this package starts.
const (
	AccessKey = "s3test-access"
	SecretKey = "s3test-secret-s3test-secret"
	Region    = "us-east-1"
)

// startTries bounds the number of ports tried; startWithin the time until a server listens.
const (
	startTries  = 8
	startWithin = 20 * time.Second
	stopWithin  = 10 * time.Second
)

// Server is a running s3server.
type Server struct {
	Dir  string // of its buckets
	Addr string // 127.0.0.1:port

	bin   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan error // holds the result of Wait
}

// URL is the endpoint.
func (s *Server) URL() string { return "http://" + s.Addr }

// Start runs a server on dir, on a free port. It ends with Stop, and with this process.
func Start(ctx context.Context, dir string) (*Server, error) {
	bin, err := binary(ctx, runtime.GOOS)
	if err != nil {
		return nil, err
	}
	var last error
	for range startTries {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		s := &Server{Dir: dir, Addr: addr, bin: bin}
		if last = s.run(); last == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("s3server did not start on any of %d ports: %w", startTries, last)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// run starts the process and waits until it reports that it listens. It must not outlive this process: it ends when its
// standard input is closed, and on Linux by the kernel too.
func (s *Server) run() error {
	cmd := exec.Command(s.bin, "-stdin", "-addr", s.Addr, "-dir", s.Dir)
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey, "GOMAXPROCS=2"}
	cmd.SysProcAttr = withParent()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint limited
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.stdin, s.ended = cmd, stdin, make(chan error, 1)
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- true
			}
		}
		s.ended <- cmd.Wait()
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			return fmt.Errorf("s3server ended: %w: %s", <-s.ended, complaint.String())
		}
		return nil
	case <-time.After(startWithin):
		_ = s.Kill()
		return fmt.Errorf("s3server said nothing for %v: %s", startWithin, complaint.String())
	}
}

// Stop ends the server by SIGTERM, and waits for it.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return s.wait()
}

// Kill ends the server as a crash would, and waits for it.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return s.wait()
}

func (s *Server) wait() error {
	defer s.stdin.Close()
	select {
	case err := <-s.ended:
		if _, exit := errors.AsType[*exec.ExitError](err); exit || err == nil {
			return nil
		}
		return err
	case <-time.After(stopWithin):
		return errors.Join(errors.New("s3server does not end"), s.cmd.Process.Kill())
	}
}

// Restart runs the server again, on the same directory and address.
func (s *Server) Restart() error {
	var err error
	for range startTries { // the port may still be in use for a moment
		if err = s.run(); err == nil {
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return err
}

// limited keeps the beginning of a process's error output.
type limited struct {
	mu   sync.Mutex
	text []byte
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := 4096 - len(l.text); room > 0 {
		l.text = append(l.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text))
}
