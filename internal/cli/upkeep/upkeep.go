// Package upkeep has the commands that look after a store: verify, repair, gc and delete, the probe of a
// backend, and the version of the program itself.
package upkeep

import "github.com/coppice-go/coppice/internal/cli/program"

// cli is one run of a command.
type cli struct{ *program.App }
