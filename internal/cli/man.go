package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// manOut is the JSON of man.
type manOut struct {
	Dir   string   `json:"dir"`
	Pages []string `json:"pages"`
}

func (c *cli) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages to a folder",
		Long:    `Write a manual page for each command to a folder, which is made if it does not exist.`,
		Example: "  coppice man ~/.local/share/man/man1 && man coppice-list",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			out := manOut{Dir: dir}
			root := cmd.Root()
			for _, of := range append([]*cobra.Command{root}, root.Commands()...) {
				name := strings.ReplaceAll(of.CommandPath(), " ", "-") + ".1"
				if err := os.WriteFile(filepath.Join(dir, name), manPage(of), 0o644); err != nil {
					return errors.Join(fmt.Errorf("%d pages were written", len(out.Pages)), err)
				}
				out.Pages = append(out.Pages, name)
			}
			if c.json {
				return c.writeJSON(out)
			}
			return c.textf("%d pages in %s", len(out.Pages), dir)
		},
	}
}

// manPage returns the manual page of a command and its subcommands, as man(7) has it.
func manPage(cmd *cobra.Command) []byte {
	var b strings.Builder
	title := strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", title, roff(strings.ToLower(title)), roff(cmd.Short))
	commands := append([]*cobra.Command{cmd}, cmd.Commands()...)
	if !cmd.HasParent() {
		commands = commands[:1] // the others have pages of their own
	}
	for _, sub := range commands {
		text := sub.Long
		if text == "" {
			text = sub.Short + "."
		}
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(sub.UseLine()), roff(text))
		if flags := sub.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(&b, ".SH OPTIONS\n.nf\n%s.fi\n", roff(flags))
		}
		if sub.Example != "" {
			fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(sub.Example))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	if !cmd.HasParent() {
		for _, sub := range cmd.Commands() {
			fmt.Fprintf(&b, ".BR coppice\\-%s (1)\n", roff(sub.Name()))
		}
		return []byte(b.String())
	}
	b.WriteString(".BR coppice (1)\n")
	return []byte(b.String())
}

// roff escapes a text so that man shows it as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
