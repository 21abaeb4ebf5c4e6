// Package message makes messages of what people write: it puts prompts in the place of their names, and
// attaches the resources of MCP servers that are named.
package message

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

// A Source is where that comes from.
type Source struct {
	Servers *mcp.Servers // nil if there are none
	Home    string       // of fermata, which has prompt files
	Dir     string       // the directory to work in
}

// Expand makes a message of what a person wrote: "/name arguments" becomes the text of a prompt file, or
// what an MCP server makes of its prompt server.prompt, and the resources of MCP servers that are named as
// @server:uri are attached. It waits for the servers that it needs.
func (s Source) Expand(ctx context.Context, content []p.Content) ([]p.Content, error) {
	var out []p.Content
	for _, c := range content {
		if c.Type != p.ContentText || c.Attached != "" {
			out = append(out, c)
			continue
		}
		written, err := s.expandPrompt(ctx, c.Text)
		if err != nil {
			return nil, err
		}
		attached, err := s.attach(ctx, c.Text)
		if err != nil {
			return nil, err
		}
		out = append(append(out, written...), attached...)
	}
	return out, nil
}

func (s Source) expandPrompt(ctx context.Context, text string) ([]p.Content, error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return p.Text(text), nil
	}
	if expanded, ok := skills.ExpandPrompt(skills.Prompts(s.Home, s.Dir), text); ok || s.Servers == nil {
		return p.Text(expanded), nil
	}
	name, arguments, _ := strings.Cut(rest, " ")
	found, ok, err := s.Servers.FindPrompt(ctx, s.Dir, strings.TrimSpace(name))
	if !ok || err != nil {
		return p.Text(text), err
	}
	return s.Servers.GetPrompt(ctx, found, s.Dir, skills.SplitWords(arguments))
}

// Prompts are the prompts of MCP servers that are known. It never blocks.
func (s Source) Prompts() []mcp.Prompt {
	if s.Servers == nil {
		return nil
	}
	return s.Servers.Prompts(s.Dir)
}

// mention is how a message names a resource of an MCP server.
var mention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s("'])@([A-Za-z0-9_-]+):(\S+)`) })

// maxMentions is how many resources a message may name.
const maxMentions = 16

// attach reads the resources that a text names. A name that is not one of a server is just text.
func (s Source) attach(ctx context.Context, text string) ([]p.Content, error) {
	if s.Servers == nil || !strings.Contains(text, "@") {
		return nil, nil
	}
	var list []p.Content
	var seen []string
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		server, uri := m[1], m[2]
		if !s.Servers.Has(s.Dir, server) {
			continue
		}
		if !s.knows(server, uri) {
			uri = strings.TrimRight(uri, `.,;:!?)]}"'`)
		}
		name := "@" + server + ":" + uri
		if slices.Contains(seen, name) {
			continue
		}
		if seen = append(seen, name); len(seen) > maxMentions {
			return nil, fmt.Errorf("a message can name at most %d resources", maxMentions)
		}
		content, err := s.Servers.ReadResource(ctx, s.Dir, server, uri)
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

func (s Source) knows(server, uri string) bool {
	return slices.ContainsFunc(s.Servers.Resources(s.Dir), func(r mcp.Resource) bool { return r.Server == server && r.URI == uri })
}

// maxFound is how many resources are proposed.
const maxFound = 20

// FindResources proposes resources of MCP servers that fit what was typed, as @server:uri. It never blocks.
func (s Source) FindResources(typed string) []string {
	if s.Servers == nil || typed == "" {
		return nil
	}
	var list []string
	for _, r := range s.Servers.Resources(s.Dir) {
		name := r.Server + ":" + r.URI
		if len(list) < maxFound && !strings.ContainsAny(name, " \t") && strings.Contains(strings.ToLower(name+" "+r.Name), strings.ToLower(typed)) {
			list = append(list, "@"+name)
		}
	}
	return list
}
