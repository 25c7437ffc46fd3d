// Package change has the commands that write to sessions: import, create and append; branch, switch and
// label; snapshot and prune; rollback and fork. Each of them is one commit, or none.
package change

import "github.com/coppice-go/coppice/internal/cli/program"

// cli is one run of a command.
type cli struct{ *program.App }
