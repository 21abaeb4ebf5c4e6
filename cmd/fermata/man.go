package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// manCommand prints the manual page of a command, or writes those of all: packages ship them.
func manCommand(s cli.Streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "man [COMMAND]",
		Short:   "Print the manual page of a command",
		Long:    "Print the manual page of a command in the form that man reads.\nWith --dir, write the pages of all commands into a directory.",
		Example: "  fermata man exec | man -l -\n  fermata man --dir /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && len(args) > 0 {
				return cli.Usagef("--dir writes the pages of all commands: it takes no COMMAND")
			}
			if dir != "" {
				return writeManuals(cmd.Root(), dir)
			}
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return cli.Usagef("there is no command %q", strings.Join(args, " "))
			}
			return writeManual(s.Out, of)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into `DIR`")
	return cmd
}

// writeManuals writes a page for each command that the help names.
func writeManuals(cmd *cobra.Command, dir string) error {
	var page strings.Builder
	if err := writeManual(&page, cmd); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, manualName(cmd)+".1"), []byte(page.String()), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writeManuals(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writeManual writes the page of one command. It has no date: two builds of one version are equal.
func writeManual(w io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	name := manualName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"fermata %s\" \"fermata\"\n", strings.ToUpper(roff(name)), cli.Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(lowerFirst(cmd.Short)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roffLines(long))
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(manualName(c)), roff(c.Short))
			}
		}
	}
	writeFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	writeFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roffLines(cmd.Example))
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(manualName(cmd.Parent())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}

	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		line := "--" + f.Name
		if f.Shorthand != "" {
			line = "-" + f.Shorthand + ", " + line
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(line))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		fmt.Fprintf(b, "\n%s\n", roffLines(usage))
	})
}

// roff makes text safe for man: a backslash and a hyphen stand for themselves, and what is
// not ASCII is named by its number, which every man understands.
func roff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// roffLines is roff for lines: one that begins with a dot or a quote would be a request.
func roffLines(s string) string {
	lines := strings.Split(roff(s), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func lowerFirst(s string) string {
	if s == "" || strings.HasPrefix(s, "MCP") {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
