package cli

import "testing"

// What is resumed by its name is what the terminal continues.
func TestResumeLeavesACrumb(t *testing.T) {
	u := &user{t: t, store: stored(t, "/w", "/w", "/v"), env: map[string]string{
		"COPPICE_STATE": t.TempDir(), "COPPICE_HISTORY": "off", "TMUX_PANE": "%1",
	}}
	u.sees("session   s0", u.run("resume", "s0", "--terminal", "none"))
	u.sees("s1\n", u.run("continue", "--cwd", "/w"))
	u.sees("session   s0", u.run("resume", "s0"))
	u.sees("s0\n", u.run("continue", "--cwd", "/w"))
	u.sees("no session", u.run("resume", "nosuch"))
	u.sees("s0\n", u.run("continue", "--cwd", "/w"))
	u.sees("s1\n", u.run("continue", "--cwd", "/w", "--terminal", "other"))
	u.env["COPPICE_STATE"], u.env["HOME"] = "", ""
	u.json = true
	u.sees(`{"session":"s0"`, u.run("resume", "s0"))
}
