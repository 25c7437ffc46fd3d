package cli

import "testing"

// A command that is built alone is the same as among all others.
func TestOneCommandAlone(t *testing.T) {
	t.Parallel()
	for _, entry := range commands {
		alone, _, code := call(t, "mem:", "", entry.name, "--help")
		if code != 0 {
			t.Errorf("%s --help: exit code %d", entry.name, code)
		}
		c, among, _ := bare()
		root := c.root("")
		root.SetArgs([]string{entry.name, "--help"})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Error(err)
		}
		if alone == "" || alone != among.String() {
			t.Errorf("%s --help shows\n%s\namong the others\n%s", entry.name, alone, among)
		}
	}
}

func TestCommandIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"list"}, "list"},
		{[]string{"--json", "--single-writer", "--store=x", "list", "tree"}, "list"},
		{[]string{"--store", "tree", "list"}, "list"},
		{[]string{"--store"}, ""},
		{[]string{"--help", "list"}, ""},
		{[]string{"help", "list"}, ""},
		{[]string{"title", "s"}, ""}, // an alias
		{[]string{"--", "list"}, ""},
	} {
		if got := commandIn(tt.args); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}
