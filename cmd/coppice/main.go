// Command coppice keeps the sessions of AI agents: every conversation as a tree of which nothing is lost,
// every state of the agent exactly.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/coppice-go/coppice/internal/cli"
)

func main() {
	collectLate()
	os.Exit(cli.Main(os.Args[1:]))
}

// collectLate makes the first garbage collection wait for a heap of 32 MiB, not of 4: most commands end before that.
func collectLate() {
	const late = 800 // percent of 4 MiB
	usual := debug.SetGCPercent(late)
	if os.Getenv("GOGC") != "" {
		debug.SetGCPercent(usual)
		return
	}
	runtime.AddCleanup(new(*int), func(usual int) { // once it was collected
		if now := debug.SetGCPercent(usual); now != late {
			debug.SetGCPercent(now) // the command's choice
		}
	}, usual)
}
