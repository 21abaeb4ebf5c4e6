// Package exportcmd is the command fermata export, and what /export of the terminal UI does: a
// conversation as a file for people (Markdown, HTML) or programs (JSON).
package exportcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A conversation is what is exported.
type conversation struct {
	id p.ConversationID
	*transcript.Transcript
	rollout *convert.Rollout
}

// formats write a conversation, by the ending of the file.
var formats = map[string]func(io.Writer, conversation) error{
	".md": writeMarkdown, ".markdown": writeMarkdown,
	".json": writeJSON, ".jsonl": writeRollout,
	".html": writeHTML, ".htm": writeHTML,
}

// named are the formats that --format names.
var named = map[string]func(io.Writer, conversation) error{
	"": writeMarkdown, "markdown": writeMarkdown, "json": writeJSON, "html": writeHTML, "codex": writeRollout,
}

// writeRollout writes a conversation as Codex keeps its own.
func writeRollout(w io.Writer, c conversation) error { return c.rollout.Write(w) }

// Command returns fermata export.
func Command(s cli.Streams) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a conversation to a file, as Markdown, HTML or JSON, or for Codex",
		Long: "Write a conversation as a document: Markdown, HTML (one file, without scripts) or JSON, by the ending of FILE. Without -o it is\n" +
			"printed, as Markdown or in the format that --format names. A file that exists is not overwritten.\n\n" +
			"With --format codex, or a FILE that ends in .jsonl, it is a rollout that Codex resumes. docs/import.md says where Codex looks for it.",
		Example:           "  fermata export --last -o conversation.html\n  fermata export 01a1df48 --format json | jq '.items[].kind'",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if file != "" && format != "" {
				return cli.Usagef("--format cannot be used with -o: the ending of the file decides")
			}
			if _, err := formatOf(file); file != "" && err != nil {
				return cli.Usagef("%w", err)
			}
			write, ok := named[format]
			if !ok {
				return cli.Usagef("--format is markdown, html, json or codex, not %q", format)
			}
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			if file != "" {
				path, err := ToFile(cmd.Context(), e.Local, id, "", file)
				if err == nil {
					fmt.Fprintln(s.Err, "written to "+path)
				}
				return err
			}
			c, err := read(cmd.Context(), e.Local, id)
			if err != nil {
				return err
			}
			return write(s.Out, c)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`, which ends in .md, .html, .json or .jsonl")
	cmd.Flags().StringVar(&format, "format", "", "print in `FORMAT`: markdown, html, json or codex")
	return cli.TakesLast(cmd)
}

func formatOf(file string) (func(io.Writer, conversation) error, error) {
	ending := strings.ToLower(filepath.Ext(file))
	if write := formats[ending]; write != nil {
		return write, nil
	}
	return nil, fmt.Errorf("%s: the name must end in .md, .html, .json or .jsonl", file)
}

func read(ctx context.Context, e *engine.Local, id p.ConversationID) (conversation, error) {
	c := conversation{id, &transcript.Transcript{}, &convert.Rollout{}}
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return c, err
		}
		c.Apply(ev)
		c.rollout.Add(ev)
	}
	return c, nil
}

// ToFile writes a conversation to a new file, in the format of its ending, and returns its path. A
// relative name is one in dir. Without a name there is one made of the id.
func ToFile(ctx context.Context, e *engine.Local, id p.ConversationID, dir, file string) (string, error) {
	if file == "" {
		file = "conversation-" + string(id[:min(8, len(id))]) + ".md"
	}
	write, err := formatOf(file)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	c, err := read(ctx, e, id)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("%s exists: name another file", file)
	case err != nil:
		return "", fmt.Errorf("export: %w", err)
	}
	b := bufio.NewWriter(f)
	if err := errors.Join(write(b, c), b.Flush(), f.Close()); err != nil {
		os.Remove(file)
		return "", fmt.Errorf("export to %s: %w", file, err)
	}
	return file, nil
}

// title is what the document is called.
func (c conversation) title() string {
	if c.Title != "" {
		return c.Title
	}
	return "Conversation " + string(c.id)
}

// isOpen reports whether an item has not ended.
func isOpen(it *transcript.Item) bool {
	return it.Status == transcript.Open || it.Status == transcript.Asking
}

// hidden reports whether an item shows nothing that another one does not.
func hidden(it *transcript.Item) bool {
	return it.Kind == transcript.Call && it.Tool == "update_plan" && it.Status != transcript.Failed
}
