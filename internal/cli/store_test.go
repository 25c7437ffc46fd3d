package cli

import (
	"path/filepath"
	"testing"
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
	c.storeFlag = "mem:"
	if url, err := c.storeURL(); err != nil || url != "mem:" {
		t.Errorf("%q, %v", url, err)
	}
	c.storeFlag, env = "", nil
	if _, err := c.storeURL(); err == nil {
		t.Error("a store without a home folder")
	}
}
