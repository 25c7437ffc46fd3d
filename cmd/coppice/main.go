// Command coppice keeps the sessions of AI agents: every conversation as a tree of which nothing is lost,
// every state of the agent exactly.
package main

import (
	"os"

	"github.com/coppice-go/coppice/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
