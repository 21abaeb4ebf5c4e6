package app

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	p "github.com/fermata-agent/fermata/protocol"
)

// Expand makes a message of what a person wrote: "/name arguments" becomes the text of a prompt file, or
// what an MCP server makes of its prompt server.prompt, and the resources of MCP servers that are named as
// @server:uri are attached. It waits for the servers that it needs.
func (a *App) Expand(ctx context.Context, content []p.Content) ([]p.Content, error) {
	var out []p.Content
	for _, c := range content {
		if c.Type != p.ContentText || c.Attached != "" {
			out = append(out, c)
			continue
		}
		written, err := a.expandPrompt(ctx, c.Text)
		if err != nil {
			return nil, err
		}
		attached, err := a.attach(ctx, c.Text)
		if err != nil {
			return nil, err
		}
		out = append(append(out, written...), attached...)
	}
	return out, nil
}

func (a *App) expandPrompt(ctx context.Context, text string) ([]p.Content, error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return p.Text(text), nil
	}
	if expanded, ok := skills.ExpandPrompt(a.Prompts(a.Cwd), text); ok || a.servers == nil {
		return p.Text(expanded), nil
	}
	name, arguments, _ := strings.Cut(rest, " ")
	found, ok, err := a.servers.FindPrompt(ctx, a.Cwd, strings.TrimSpace(name))
	if !ok || err != nil {
		return p.Text(text), err
	}
	return a.servers.GetPrompt(ctx, found, a.Cwd, skills.SplitWords(arguments))
}

// MCPPrompts are the prompts of MCP servers that are known. It never blocks.
func (a *App) MCPPrompts() []mcp.Prompt {
	if a.servers == nil {
		return nil
	}
	return a.servers.Prompts(a.Cwd)
}

// mention is how a message names a resource of an MCP server.
var mention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s("'])@([A-Za-z0-9_-]+):(\S+)`) })

// maxMentions is how many resources a message may name.
const maxMentions = 16

// attach reads the resources that a text names. A name that is not one of a server is just text.
func (a *App) attach(ctx context.Context, text string) ([]p.Content, error) {
	if a.servers == nil || !strings.Contains(text, "@") {
		return nil, nil
	}
	var list []p.Content
	var seen []string
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		server, uri := m[1], m[2]
		if !a.servers.Has(a.Cwd, server) {
			continue
		}
		if !a.knows(server, uri) {
			uri = strings.TrimRight(uri, `.,;:!?)]}"'`)
		}
		name := "@" + server + ":" + uri
		if slices.Contains(seen, name) {
			continue
		}
		if seen = append(seen, name); len(seen) > maxMentions {
			return nil, fmt.Errorf("a message can name at most %d resources", maxMentions)
		}
		content, err := a.servers.ReadResource(ctx, a.Cwd, server, uri)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, c := range content {
			if c.Type == p.ContentText {
				c.Text = fmt.Sprintf("<attached resource=%q>\n%s\n</attached>", name, c.Text)
			}
			c.Attached = name
			list = append(list, c)
		}
	}
	return list, nil
}

func (a *App) knows(server, uri string) bool {
	return slices.ContainsFunc(a.servers.Resources(a.Cwd), func(r mcp.Resource) bool { return r.Server == server && r.URI == uri })
}

// maxFound is how many resources are proposed.
const maxFound = 20

// FindResources proposes resources of MCP servers that fit what was typed, as @server:uri. It never blocks.
func (a *App) FindResources(typed string) []string {
	if a.servers == nil || typed == "" {
		return nil
	}
	var list []string
	for _, r := range a.servers.Resources(a.Cwd) {
		name := r.Server + ":" + r.URI
		if len(list) < maxFound && !strings.ContainsAny(name, " \t") && strings.Contains(strings.ToLower(name+" "+r.Name), strings.ToLower(typed)) {
			list = append(list, "@"+name)
		}
	}
	return list
}
