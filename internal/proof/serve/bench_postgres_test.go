package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// database is a PostgreSQL of the distribution's package, with its default settings: a commit is synced.
type database struct {
	dir string
	as  *syscall.SysProcAttr // PostgreSQL refuses to run as root
}

const pgSetup = `CREATE TABLE turns (id bigserial PRIMARY KEY, session int, body text);
CREATE INDEX ON turns (session, id);
CREATE TABLE blobs (LIKE turns INCLUDING ALL);
CREATE TABLE writes (LIKE turns INCLUDING ALL);
`

// postgres returns the sides of PostgreSQL, whose client is pgbench; none if it is not installed. One INSERT has the
// bytes of a turn, three in a transaction have a third each.
func postgres(b *testing.B, root string) []*fleetSide {
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		b.Log("PostgreSQL is not installed")
		return nil
	}
	bin := bins[len(bins)-1]
	d := &database{dir: filepath.Join(root, "pg")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		b.Fatal(err)
	}
	if u, err := user.Lookup("postgres"); err == nil && os.Getuid() == 0 {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		d.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(d.dir, uid, gid); err != nil {
			b.Fatal(err)
		}
	}
	data := filepath.Join(d.dir, "data")
	d.run(b, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "--auth=trust")
	options := fmt.Sprintf("-c listen_addresses= -c max_connections=250 -c unix_socket_directories=%s", d.dir)
	d.run(b, filepath.Join(bin, "pg_ctl"), "-D", data, "-w", "-l", filepath.Join(d.dir, "log"), "-o", options, "start")
	b.Cleanup(func() { _ = d.command(filepath.Join(bin, "pg_ctl"), "-D", data, "-m", "immediate", "stop").Run() })
	d.run(b, filepath.Join(bin, "psql"), "-h", d.dir, "-U", "bench", "-d", "postgres", "-q", "-c", pgSetup)
	insert := func(table string, size int) string {
		return fmt.Sprintf("INSERT INTO %s (session, body) VALUES (:client_id, '%s');\n", table, turnBytes[:size])
	}
	third := len(turnBytes) / 3
	three := "BEGIN;\n" + insert("turns", third) + insert("blobs", third) + insert("writes", third) + "COMMIT;\n"
	var sides []*fleetSide
	for _, s := range []struct{ name, script string }{
		{"PostgreSQL, one INSERT", insert("turns", len(turnBytes))}, {"PostgreSQL, three INSERTs", three},
	} {
		file := filepath.Join(d.dir, strings.ReplaceAll(s.name, " ", "-"))
		if err := os.WriteFile(file, []byte(s.script), 0o644); err != nil { //nolint:gosec // read by another user
			b.Fatal(err)
		}
		sides = append(sides, &fleetSide{name: s.name, measure: func(b *testing.B, n int, span time.Duration) fleetLap {
			return d.lap(b, filepath.Join(bin, "pgbench"), file, n, span)
		}})
	}
	return sides
}

func (d *database) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir, cmd.SysProcAttr = d.dir, d.as
	return cmd
}

func (d *database) run(b *testing.B, name string, args ...string) {
	b.Helper()
	cmd := d.command(name, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v: %s", name, err, &said)
	}
}

// lap is a run of pgbench, with a connection for each agent. Its log has a line for each transaction.
func (d *database) lap(b *testing.B, pgbench, script string, agents int, span time.Duration) fleetLap {
	seconds := max(1, int(span/time.Second))
	prefix := filepath.Join(d.dir, "wait")
	cmd := d.command(pgbench, "-n", "-M", "prepared", "-h", d.dir, "-U", "bench", "-c", strconv.Itoa(agents),
		"-j", strconv.Itoa(min(agents, 2)), "-T", strconv.Itoa(seconds), "-l", "--log-prefix="+prefix,
		"-f", script, "postgres")
	used := d.used()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}
	time.Sleep(200 * time.Millisecond) // until the ends of its connections are accounted for
	l := fleetLap{took: time.Duration(seconds) * time.Second}
	l.used = d.used() - used + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	logs, _ := filepath.Glob(prefix + ".*")
	for _, name := range logs {
		if err := errors.Join(l.read(name), os.Remove(name)); err != nil {
			b.Fatal(err)
		}
	}
	l.turns = len(l.waits)
	return l
}

// read adds the transactions of a log: its third column is the time that one took, in microseconds.
func (l *fleetLap) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		us, err := strconv.Atoi(strings.Fields(lines.Text())[2])
		if err != nil {
			return err
		}
		l.waits = append(l.waits, time.Duration(us)*time.Microsecond)
	}
	return lines.Err()
}

// used is the processor time of the server and of all its children, those that ended included.
func (d *database) used() (sum time.Duration) {
	p, _ := os.ReadFile(filepath.Join(d.dir, "data", "postmaster.pid"))
	first, _, _ := strings.Cut(string(p), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	sum = ticks(pid, 11, 12, 13, 14)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for child := range strings.FieldsSeq(string(children)) {
		n, _ := strconv.Atoi(child)
		sum += usedBy(n)
	}
	return sum
}
