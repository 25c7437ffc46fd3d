// Command generate plays the script of the example session and writes its lines as a pi v3 file.
//
// A script is text. A line that starts with a dot is a direction, and the lines up to the next one are
// its body:
//
//	.file PATH            a file that is there from the start
//	.user                 what the user says
//	.think  .say          what the assistant thinks and says; a new message after tool results
//	.read PATH [FROM-TO]  tool calls: several in a row are parallel calls of one message, and each is
//	.grep PATTERN [DIR]   answered from the files as they are at that moment
//	.write PATH           the body is the new file
//	.edit PATH            the body is old text, a line "=>", new text
//	.bash COMMAND         the body is the output; .bash! for a command that failed
//	.then                 the calls after it are a new message of the assistant
//	.shell COMMAND        a command that the user ran; the body is its output
//	.stop                 the user stopped the assistant: its message ends as aborted
//	.mark NAME            names the last entry
//	.at NAME  .before N   go on from that entry, or from its parent: another branch
//	.save NAME  .load N   remember the files, and put them back
//	.summary NAME         a branch summary of the line that ended at NAME
//	.compact NAME         a compaction that keeps from NAME on; the body is its summary
//	.label NAME TEXT      a label on that entry
//	.model PROVIDER ID    .thinking LEVEL  .title TEXT  .note TYPE  .pause DURATION
//
// Ids, times and usage follow from the script alone.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: generate SCRIPT OUTPUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(script, output string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	lines, err := Play(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	return os.WriteFile(output, lines, 0o644)
}
