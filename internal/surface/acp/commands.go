package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/app/message"
	"github.com/fermata-agent/fermata/internal/app/review"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A command is what can be typed after a slash. It does one of three things.
type command struct {
	name, hint, help string

	send func(args string) string                                                    // the message that it stands for
	op   p.Op                                                                        // an op that runs a turn
	do   func(c *conn, ctx context.Context, s *session, args string) (string, error) // something that is answered at once
}

// commands are those, in the order in which they are offered.
func commands() []command {
	return []command{
		{name: "review", hint: "branch or commit", help: "review what differs from the last commit, or a branch", send: func(args string) string { return review.Target{Name: args}.Prompt() }},
		{name: "init", help: "write an AGENTS.md for this repository", send: func(string) string { return message.InitTask }},
		{name: "compact", help: "replace the history with a summary", op: p.Compact{}},
		{name: "undo-turn", hint: "number of the turn", help: "restore the files that a turn changed", do: (*conn).undo},
		{name: "ps", help: "list background commands and what they print", do: (*conn).ps},
		{name: "kill", hint: "number", help: "stop a background command", do: (*conn).kill},
		{name: "try-now", help: "retry a turn that waits for a limit", op: p.TryNow{}},
		{name: "rename", hint: "title", help: "give the conversation a title", do: (*conn).rename},
		{name: "status", help: "show settings and usage", do: (*conn).status},
	}
}

// commandList is what can be typed after a slash: our own commands, then the user's prompt files.
func commandList(prompts []skills.Prompt) wire.Commands {
	out := wire.Commands{Update: "available_commands_update", Commands: []wire.Command{}}
	add := func(name, hint, help string) {
		if slices.ContainsFunc(out.Commands, func(c wire.Command) bool { return c.Name == name }) {
			return
		}
		c := wire.Command{Name: name, Description: help}
		if hint != "" {
			c.Input = &wire.Hint{Hint: hint}
		}
		out.Commands = append(out.Commands, c)
	}
	for _, c := range commands() {
		add(c.name, c.hint, c.help)
	}
	for _, f := range prompts {
		add(f.Name, f.Arguments, cmp.Or(f.Description, "send "+filepath.Base(f.File)))
	}
	return out
}

// findCommand returns the command that a message is, if it is one.
func findCommand(content []p.Content) (found command, args string, ok bool) {
	if len(content) != 1 || content[0].Type != p.ContentText {
		return command{}, "", false
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(content[0].Text), "/")
	if !ok {
		return command{}, "", false
	}
	name, args, _ := strings.Cut(rest, " ")
	for _, c := range commands() {
		if c.name == name {
			return c, strings.TrimSpace(args), true
		}
	}
	return command{}, "", false
}

// expand puts the text of a prompt file in the place of its name.
func (c *conn) expand(cwd string, content []p.Content) []p.Content {
	if len(content) == 0 || !strings.HasPrefix(content[0].Text, "/") {
		return content
	}
	if text, ok := skills.ExpandPrompt(c.s.o.Local.Prompts(cwd), content[0].Text); ok {
		content = slices.Clone(content)
		content[0].Text = text
	}
	return content
}

// undo restores the files that a turn changed.
func (c *conn) undo(ctx context.Context, s *session, args string) (string, error) {
	var turn int
	if args != "" {
		var err error
		if turn, err = strconv.Atoi(args); err != nil || turn < 1 {
			return "", errors.New("the number of a turn is expected, or nothing for the last one that changed files")
		}
	}
	u, err := c.s.o.Local.Undo(ctx, s.id, p.TurnID(turn))
	if err != nil {
		return "", err
	}
	if err := u.Do(ctx); err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("What turn %d changed in files was undone.", u.Turn)}
	if u.Files == 0 {
		lines[0] = fmt.Sprintf("The files that turn %d changed are what they were before it.", u.Turn)
	}
	return strings.Join(append(lines, u.Notes...), "\n"), nil
}

// ps lists background commands.
func (c *conn) ps(ctx context.Context, s *session, _ string) (string, error) {
	snap, err := c.s.o.Engine.Resume(ctx, s.id)
	if err != nil {
		return "", err
	}
	if len(snap.Background) == 0 {
		return "No background command is running.", nil
	}
	var lines []string
	for _, b := range snap.Background {
		lines = append(lines, fmt.Sprintf("%d: `%s`", b.ID, transcript.CommandLine(b.Command)))
	}
	return strings.Join(lines, "\n"), nil
}

// kill stops a background command.
func (c *conn) kill(ctx context.Context, s *session, args string) (string, error) {
	n, err := strconv.Atoi(args)
	if err != nil {
		return "", errors.New("the number of a background command is expected: see /ps")
	}
	if _, err := c.s.o.Engine.Submit(ctx, s.id, p.KillBackground{ID: p.BackgroundID(n)}); err != nil {
		return "", err
	}
	return fmt.Sprintf("Background command %d is being stopped.", n), nil
}

func (c *conn) rename(ctx context.Context, s *session, args string) (string, error) {
	if args == "" {
		return "", errors.New("a title is expected")
	}
	_, err := c.s.o.Engine.Submit(ctx, s.id, p.Rename{Title: args})
	return "The conversation is called " + args + ".", err
}

func (c *conn) status(ctx context.Context, s *session, _ string) (string, error) {
	snap, err := c.s.o.Engine.Resume(ctx, s.id)
	if err != nil {
		return "", err
	}
	set := snap.Settings
	lines := []string{
		"Conversation: " + string(s.id), "Directory: " + set.Cwd, "Model: " + strings.TrimSpace(set.Model+" "+set.Effort),
		fmt.Sprintf("Sandbox: %s; asks for approval: %s", set.Sandbox.Mode, set.Approval),
		fmt.Sprintf("Tokens: %d in, %d out", snap.Usage.Input, snap.Usage.Output),
	}
	if n := len(snap.Returned); n > 0 {
		lines = append(lines, fmt.Sprintf("Messages that were not delivered: %d (fermata returned %s)", n, s.id))
	}
	return strings.Join(lines, "\n"), nil
}
