// Package look has the commands that show what is there and write nothing: list, resume, context,
// show, log, search, diff and export.
package look

import "github.com/coppice-go/coppice/internal/cli/program"

// cli is one run of a command.
type cli struct{ *program.App }
