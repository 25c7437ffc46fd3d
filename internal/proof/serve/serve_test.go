// Package serve tests the HTTP service under stress by its clients: hundreds of agents that commit at once, a server
// that is killed at any moment and restarted, connections that are cut, a thousand followers. The server is a separate
// process wherever its resources are measured, or where it dies; it runs the code of `coppice serve`.
package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/cli"
	"github.com/coppice-go/coppice/internal/proof"
)

const (
	jobEnv   = "COPPICE_SERVE_JOB" // this process is a server: "command" or "measured"
	soakEnv  = "COPPICE_SOAK"      // duration, as in `make soak`; absent = by the size of the run
	patience = 30 * time.Second    // for an answer, and for a server to start
)

func TestMain(m *testing.M) {
	switch os.Getenv(jobEnv) {
	case "":
		os.Exit(m.Run())
	case "command":
		os.Exit(cli.Main(os.Args[1:]))
	case "measured":
		if err := measured(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// soaked returns the duration of a soak; 0 = no soak.
func soaked(t *testing.T) time.Duration {
	text := os.Getenv(soakEnv)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s is %q: want a duration such as 10m", soakEnv, text)
	}
	return d
}

// pick returns a number by the size of the run.
func pick(t *testing.T, quick, ci, nightly, soak int) int {
	if soaked(t) > 0 {
		return soak
	}
	return proof.Pick(t, quick, ci, nightly)
}

// process is a server in a process of its own.
type process struct {
	cmd  *exec.Cmd
	addr string // host:port
	in   io.WriteCloser
	out  *bufio.Reader
	said strings.Builder // its standard error, without the log of requests
}

// launch starts a server, and does not wait for it.
func launch(ctx context.Context, job string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), jobEnv+"="+job, "COPPICE_HISTORY=off")
	p.cmd.Stderr = &p.said
	if job == "command" {
		p.cmd.Stderr = nil // a line for each request
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// command starts `coppice serve` on a folder.
func command(ctx context.Context, dir string) (*process, error) {
	return launch(ctx, "command", "serve", "--store", dir, "--addr", "127.0.0.1:0")
}

// ready waits for the address of a server.
func (p *process) ready() error {
	hung := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer hung.Stop()
	line, err := p.out.ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "serving http://")
	if !ok {
		return fmt.Errorf("the server said %q and no address: %w: %s", line, err, &p.said)
	}
	p.addr = addr
	return nil
}

// end ends a server by SIGTERM. It has to end without an error, and in time.
func (p *process) end() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	hung := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer hung.Stop()
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ended with %w: %s", err, &p.said)
	}
	return nil
}

// client is one connection at a time. It uses little, so that the measured load is that of the server.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// reply is a complete answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

var errStatus = errors.New("unexpected status")

// ask sends a request and reads its answer. After an error the outcome of the request is unknown; the next one uses a
// new connection.
func (c *client) ask(addr, method, path, body string, headers ...string) (r reply, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.conn == nil {
		if c.conn, err = (&net.Dialer{Timeout: patience}).Dial("tcp", addr); err != nil {
			return r, err
		}
		c.in = bufio.NewReader(c.conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return r, err
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", method, path, len(body))
	for _, h := range headers {
		head += h + "\r\n"
	}
	if _, err := c.conn.Write([]byte(head + "\r\n" + body)); err != nil {
		return r, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return r, err
	}
	r.status, r.header = resp.StatusCode, resp.Header
	r.body, err = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.Close {
		c.close()
	}
	return r, err
}

// must sends a request that has to succeed.
func (c *client) must(status int, addr, method, path, body string, headers ...string) (reply, error) {
	r, err := c.ask(addr, method, path, body, headers...)
	if err == nil && r.status != status {
		err = fmt.Errorf("%s %s: %w: %d, want %d: %s", method, path, errStatus, r.status, status, r.body)
	}
	return r, err
}

// create creates a session.
func (c *client) create(addr, session string) error {
	_, err := c.must(http.StatusCreated, addr, http.MethodPut, "/v1/sessions/"+session, `{"title":"proof"}`,
		"If-None-Match: *")
	return err
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}
