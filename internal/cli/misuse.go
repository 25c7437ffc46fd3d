package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// strict makes a command and its subcommands report wrong arguments and flags by name, with the nearest right ones.
func (c *cli) strict(cmd *cobra.Command) {
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		c.command = cmd
		group := cmd.HasAvailableSubCommands() && !strings.Contains(cmd.Use, " ")
		switch {
		case group && len(args) > 0:
			return unknownCommand(cmd, args[0])
		case check == nil || check(cmd, args) == nil:
			return nil
		}
		return wrongCount(cmd, args)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.command = cmd
		return wrongFlag(cmd, err)
	})
	for _, sub := range cmd.Commands() {
		c.strict(sub)
	}
}

// unknownCommand returns the error for a name that no subcommand has.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	full := strings.TrimPrefix(nameOf(cmd)+" "+name, "coppice ")
	for _, sub := range cmd.Commands() {
		if slices.Contains(sub.SuggestFor, name) {
			return usageError("unknown command %q; `coppice help %s` does that", full, nameOf(sub))
		}
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usageError("unknown command %q%s", full, perhaps(name, names))
}

// wrongCount returns the error for more or fewer arguments than the usage line of a command has.
func wrongCount(cmd *cobra.Command, args []string) error {
	want, _, _ := strings.Cut(strings.TrimPrefix(cmd.Use, cmd.Name()), "<") // without what comes by standard input
	want = strings.TrimSpace(want)
	switch {
	case want == "":
		return usageError("%s takes no argument, but has %q", nameOf(cmd), args[0])
	case len(args) == 0:
		return usageError("%s needs %s", nameOf(cmd), want)
	case len(args) == 1:
		return usageError("%s needs %s, but has one argument", nameOf(cmd), want)
	}
	return usageError("%s needs %s, but has %d arguments", nameOf(cmd), want, len(args))
}

// wrongFlag returns the error for a flag that a command does not have, or for a value that it does not take.
func wrongFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if unknown.GetSpecifiedShortnames() != "" {
			return usageError("%s has no flag -%s", nameOf(cmd), unknown.GetSpecifiedName())
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return usageError("%s has no flag %s%s", nameOf(cmd), name, perhaps(name, names))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		kinds := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more",
			"float64": "a number", "bool": "true or false", "duration": "a duration such as 30s or 12h",
		}
		if kind := kinds[f.Value.Type()]; kind != "" {
			return usageError("--%s %q: want %s", f.Name, wrong.GetValue(), kind)
		}
		return usageError("--%s %q: %w", f.Name, wrong.GetValue(), wrong.Unwrap())
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError("--%s needs a value", missing.GetSpecifiedName())
	}
	return usageError("%s: %w", nameOf(cmd), err)
}

// usageLine returns how the command is used that was called in a wrong way.
func (c *cli) usageLine() string {
	if c.command == nil || !c.command.HasParent() {
		return "`coppice help` lists the commands"
	}
	return fmt.Sprintf("usage: %s; `coppice help %s` lists the flags", c.command.UseLine(), nameOf(c.command))
}

// nameOf returns the names of a command and those above it, without the program's.
func nameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "coppice ") }

// oneOf returns the error for a word that is not one of those that are known.
func oneOf(what, got string, known []string) error {
	return usageError("unknown %s %q: want one of %s%s", what, got, strings.Join(known, ", "), perhaps(got, known))
}

// perhaps returns "; did you mean ...?" with the known words that are nearest to a word; "" if none is near.
func perhaps(word string, known []string) string {
	if near := nearest(word, known); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// nearest returns at most three words, in their order, that differ from a word by the fewest edits, or whose beginning
// does: at most two edits, and fewer than half of its letters.
func nearest(word string, known []string) []string {
	word = strings.ToLower(word)
	var near []string
	best := min(2, (len(word)-1)/2)
	for _, candidate := range known {
		k := strings.ToLower(candidate)
		d := min(edits(word, k), edits(word, k[:min(len(k), len(word))]))
		switch {
		case d < best:
			near, best = []string{candidate}, d
		case d == best && !slices.Contains(near, candidate):
			near = append(near, candidate)
		}
	}
	return near[:min(len(near), 3)]
}

// maxWord bounds the words that are compared, in bytes.
const maxWord = 64

// edits returns how many letters are to be inserted, removed, replaced or swapped with their neighbour to make b of a.
func edits(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return maxWord
	}
	var rows [maxWord + 1][maxWord + 1]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// texts returns words as plain strings.
func texts[S ~string](words []S) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}
