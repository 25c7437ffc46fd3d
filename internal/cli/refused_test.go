package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
)

// lastingLog is a store that appends and that a command leaves to the next one.
type lastingLog struct{ backend.Appender }

func (lastingLog) Close() error { return nil }

// If the store refuses to read a folder of a session (a disk without permission) or an object of it (S3 answers 403),
// the session is listed as damaged with its cause, and verify and repair report it. The other sessions are listed,
// verified and repaired, and nothing is written to the one that was refused.
func TestUnreadableSession(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	for n, tt := range []struct {
		op, refused string
		appends     bool
		listed      bool // what a list shows can be read
	}{
		{"", "sessions/bad", true, false},
		{"get", "checkpoint_latest/bad", true, false},
		{"get", "sessions/bad/transcript", true, true},
		{"get", "checkpoint_latest/bad", false, false},
		{"get", "sessions/bad/transcript", false, true},
	} {
		t.Run(fmt.Sprint(tt.op, " ", tt.refused, " ", tt.appends), func(t *testing.T) {
			b := fault.New(memory.New(), 1)
			kept := backend.Backend(lasting{b})
			if tt.appends {
				b = fault.New(memory.NewAppender(), 1)
				kept = lastingLog{b.(backend.Appender)}
			}
			scheme := fmt.Sprint("refusing-", n)
			backend.Register(scheme, func(context.Context, *url.URL) (backend.Backend, error) { return kept, nil })
			store, file := scheme+"://x", example(t)
			for _, id := range []string{"a", "bad", "c"} {
				must(t, store, "", "import", file, "--session", id, "--again")
			}
			b.Add(fault.Rule{When: fault.On(tt.op, tt.refused), Count: -1, Err: fs.ErrPermission})
			for _, order := range []string{"activity", "created", "id"} {
				list := must(t, store, "", "list", "--order", order)
				if got := value(t, list, "sessions.len"); got != "3" {
					t.Fatalf("list --order %s: %s sessions", order, got)
				}
				for i := range 3 {
					at := fmt.Sprintf("sessions.%d.", i)
					if value(t, list, at+"id") != "bad" || tt.listed {
						continue
					}
					cause := value(t, list, at+"cause")
					if value(t, list, at+"damaged") != "true" || !strings.Contains(cause, "permission") {
						t.Errorf("list --order %s: %v", order, list)
					}
				}
			}
			out, _, _ := call(t, store, "", "list")
			if !tt.listed && (!strings.Contains(out, "damaged") || !strings.Contains(out, "permission")) {
				t.Errorf("list: %s", out)
			}
			for _, args := range []string{"verify --deep", "repair", "verify --deep bad", "repair bad"} {
				out, errs, code := call(t, store, "", strings.Fields(args)...)
				if code != 5 || !strings.Contains(out, "unreadable") || !strings.Contains(out, "permission") {
					t.Errorf("%s: exit code %d: %s%s", args, code, out, errs)
				}
			}
			b.Clear()
			verified := must(t, store, "", "verify", "--deep")
			if got := value(t, verified, "problems.len") + value(t, verified, "sessions"); got != "03" {
				t.Errorf("what was refused is damaged now: %v", verified)
			}
		})
	}
}
