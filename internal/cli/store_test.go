package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	coppice "github.com/coppice-go/coppice"
)

func TestStoreURL(t *testing.T) {
	c, _, _ := bare()
	env := map[string]string{homeVariable(): "/home/x"}
	c.getenv = func(name string) string { return env[name] }
	for _, step := range []struct{ name, value, want string }{
		{"", "", filepath.Join("/home/x", ".local", "share", "coppice")},
		{"COPPICE_STORE", "/env", "/env"},
	} {
		env[step.name] = step.value
		if url, err := c.storeURL(); err != nil || url != step.want {
			t.Errorf("%q, %v", url, err)
		}
	}
	old, data := t.TempDir(), t.TempDir()
	for _, tt := range []struct{ name, data, want string }{
		{"not set", "", filepath.Join(old, ".local", "share", "coppice")},
		{"set", data, filepath.Join(data, "coppice")},
		{"relative", "data", filepath.Join(old, ".local", "share", "coppice")},
	} {
		env = map[string]string{homeVariable(): old, "XDG_DATA_HOME": tt.data}
		if url, err := c.storeURL(); err != nil || url != tt.want {
			t.Errorf("XDG_DATA_HOME %s: %q, %v, want %q", tt.name, url, err, tt.want)
		}
	}
	// A store that was made before the variable was set is still found.
	env["XDG_DATA_HOME"] = data
	if err := os.MkdirAll(filepath.Join(old, ".local", "share", "coppice"), 0o700); err != nil {
		t.Fatal(err)
	}
	if url, err := c.storeURL(); err != nil || url != filepath.Join(old, ".local", "share", "coppice") {
		t.Errorf("with an old store: %q, %v", url, err)
	}
	c.storeFlag = "mem:"
	if url, err := c.storeURL(); err != nil || url != "mem:" {
		t.Errorf("%q, %v", url, err)
	}
	c.storeFlag, env = "", nil
	if _, err := c.storeURL(); err == nil {
		t.Error("a store without a home folder")
	}
}

type closing struct {
	io.Closer
	err error
}

func (c closing) Close() error { return c.err }

// A command whose work is stored succeeds, also where closing the session meets a full disk: its error would ask to do
// it again. Errors of the work, and unknown outcomes, stay.
func TestEndOfASession(t *testing.T) {
	full := &coppice.Error{Op: "close", Session: "s", Err: syscall.ENOSPC}
	lost := &coppice.Error{Op: "close", Session: "s", Err: coppice.ErrCommitUnknown}
	work := errors.New("the work")
	for _, tt := range []struct{ work, close, want error }{
		{nil, nil, nil},
		{nil, full, nil},
		{nil, lost, lost},
		{work, full, work},
		{nil, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
	} {
		c, _, stderr := bare()
		err := c.endSession(closing{err: tt.close}, tt.work)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%v, then %v: %v", tt.work, tt.close, err)
		}
		remark := errors.Is(tt.close, syscall.ENOSPC) && tt.work == nil
		if strings.Contains(stderr.String(), "no space left") != remark {
			t.Errorf("%v, then %v: %q", tt.work, tt.close, stderr)
		}
	}
}

// No command prints a secret of a store's address.
func TestSecretsOfAddresses(t *testing.T) {
	for _, address := range []string{
		"s3://KEYID:TopSecret@bucket/x?region=r", "s3:KEYID:TopSecret@bucket", "s3://KEYID:Top/Secret@bucket",
		"s3://bucket?secret-key=TopSecret", "s3://bucket?region=r&endpoint=http://KEYID:TopSecret@host",
		"http://KEYID:TopSecret@host", "file://KEYID:TopSecret@host/x",
	} {
		for _, command := range []string{
			"list", "verify", "import " + t.TempDir(), "serve", "backend verify", "continue", "pick --pin x",
			"resume x", "tui",
		} {
			for _, form := range []string{"", "--json "} {
				c, stdout, stderr := with(map[string]string{"COPPICE_STORE": address, homeVariable(): t.TempDir()}, "")
				if code := c.run(t.Context(), strings.Fields(form+command)); code == 0 {
					t.Errorf("%s %s: exit code 0", command, address)
				}
				text := stdout.String() + stderr.String()
				if strings.Contains(text, "KEYID") || strings.Contains(text, "Secret") {
					t.Errorf("%s%s: %s", form, command, text)
				}
			}
		}
	}
}
