package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Resource is something that a server lets be read.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri"` // with variables in braces if it is a template
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mime_type,omitempty"`
	Template    bool   `json:"template,omitempty"`
}

// A Prompt is a message that a server offers to write.
type Prompt struct {
	Server      string     `json:"server"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Arguments   []Argument `json:"arguments,omitempty"`
}

// An Argument is one of a prompt.
type Argument struct {
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
}

// maxListed is how many prompts, and how many resources, of a server are listed.
const maxListed = 1000

// listPrompts asks a server for its prompts. One that cannot list them has none.
func (s *server) listPrompts(ctx context.Context, from *sdk.ClientSession) []Prompt {
	var list []Prompt
	for p, err := range from.Prompts(ctx, nil) {
		if err != nil || len(list) == maxListed {
			break
		}
		found := Prompt{Name: p.Name, Description: p.Description}
		for _, a := range p.Arguments {
			found.Arguments = append(found.Arguments, Argument{a.Name, a.Required})
		}
		list = append(list, found)
	}
	return list
}

// listResources asks a server for its resources, then for templates of such.
func (s *server) listResources(ctx context.Context, from *sdk.ClientSession) []Resource {
	var list []Resource
	for r, err := range from.Resources(ctx, nil) {
		if err != nil || len(list) == maxListed {
			break
		}
		list = append(list, Resource{URI: r.URI, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType})
	}
	for r, err := range from.ResourceTemplates(ctx, nil) {
		if err != nil || len(list) >= maxListed {
			break
		}
		list = append(list, Resource{URI: r.URITemplate, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType, Template: true})
	}
	return list
}

// Prompts are those that are known, for a conversation in a directory. It never blocks.
func (all *Servers) Prompts(dir string) []Prompt {
	var list []Prompt
	for _, s := range all.list {
		if s.serves(dir) {
			list = append(list, s.state.Load().prompts...)
		}
	}
	return list
}

// Resources are those that are known, for a conversation in a directory. It never blocks.
func (all *Servers) Resources(dir string) []Resource {
	var list []Resource
	for _, s := range all.list {
		if s.serves(dir) {
			list = append(list, s.state.Load().resources...)
		}
	}
	return list
}

// Has reports whether there is a server of that name for conversations in a directory.
func (all *Servers) Has(dir, name string) bool { return all.find(dir, name) != nil }

func (all *Servers) find(dir, name string) *server {
	i := slices.IndexFunc(all.list, func(s *server) bool { return s.name == name && s.serves(dir) })
	if i < 0 {
		return nil
	}
	return all.list[i]
}

// ask sends a request to a server, within the time limit of its calls.
func ask[T any](ctx context.Context, s *server, send func(context.Context, *sdk.ClientSession) (T, error)) (T, error) {
	limit := s.def.ToolTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not answer within %v", limit))
	defer cancel()
	var res T
	ss, err := s.session(ctx)
	if err == nil {
		res, err = request(ctx, ss, func(ctx context.Context) (T, error) { return send(ctx, ss.sdk) })
	}
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case ss != nil && ss.lost(err):
		err = ss.why()
	}
	return res, fmt.Errorf("MCP server %s: %w", s.name, plain(err))
}

// maxAttached is how many bytes of a resource a message takes.
const maxAttached = 64 << 10

// ReadResource reads a resource of a server, for a conversation in a directory. What is long is shortened.
func (all *Servers) ReadResource(ctx context.Context, dir, name, uri string) ([]protocol.Content, error) {
	s := all.find(dir, name)
	if s == nil {
		return nil, fmt.Errorf("there is no MCP server %s", name)
	}
	got, err := ask(ctx, s, func(ctx context.Context, from *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return from.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
	if err != nil {
		return nil, err
	}
	var parts []sdk.Content
	for _, c := range got.Contents {
		parts = append(parts, &sdk.EmbeddedResource{Resource: c})
	}
	return show(got.Meta, parts...)
}

// show is what a message has of pieces that a server sent with meta.
func show(meta sdk.Meta, parts ...sdk.Content) ([]protocol.Content, error) {
	if note := omittedNote(meta); note != "" {
		parts = append(parts, &sdk.TextContent{Text: strings.TrimSpace(note)})
	}
	raw, err := json.Marshal(sdk.CallToolResult{Content: parts})
	if err != nil {
		return nil, fmt.Errorf("read what it sent: %w", err)
	}
	text, images := tool.MCPContent(raw)
	if len(text) > maxAttached {
		text = protocol.ShortenTo(text, maxAttached, 0)
	}
	return append(protocol.Text(protocol.ValidText(text)), images...), nil
}

// FindPrompt finds a prompt by its name, server.prompt, for a conversation in a directory. A server whose
// prompts are not known is started. It reports false if the name is not one of a server.
func (all *Servers) FindPrompt(ctx context.Context, dir, name string) (Prompt, bool, error) {
	of, name, ok := strings.Cut(name, ".")
	i := slices.IndexFunc(all.list, func(s *server) bool { return strings.EqualFold(s.name, of) && s.serves(dir) })
	if !ok || i < 0 {
		return Prompt{}, false, nil
	}
	s := all.list[i]
	if s.tools() == nil {
		if _, err := s.session(ctx); err != nil {
			return Prompt{}, true, fmt.Errorf("MCP server %s: %w", s.name, err)
		}
	}
	for _, p := range s.state.Load().prompts {
		if strings.EqualFold(p.Name, name) {
			return p, true, nil
		}
	}
	return Prompt{}, true, fmt.Errorf("the MCP server %s has no prompt %s", s.name, name)
}

// GetPrompt lets a server write a message by one of its prompts. Arguments are name=value, or values in the
// order that the prompt has them.
func (all *Servers) GetPrompt(ctx context.Context, p Prompt, dir string, words []string) ([]protocol.Content, error) {
	s := all.find(dir, p.Server)
	if s == nil {
		return nil, fmt.Errorf("there is no MCP server %s", p.Server)
	}
	arguments, err := p.arguments(words)
	if err != nil {
		return nil, err
	}
	got, err := ask(ctx, s, func(ctx context.Context, from *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return from.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.Name, Arguments: arguments})
	})
	if err != nil {
		return nil, err
	}
	var parts []sdk.Content
	for _, m := range got.Messages {
		if m.Role == "assistant" {
			parts = append(parts, &sdk.TextContent{Text: "Answer:"})
		}
		parts = append(parts, m.Content)
	}
	return show(got.Meta, parts...)
}

// Usage is what the arguments of the prompt are.
func (p Prompt) Usage() string {
	var words []string
	for _, a := range p.Arguments {
		word := strings.ToUpper(a.Name)
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (p Prompt) arguments(words []string) (map[string]string, error) {
	m := map[string]string{}
	next := 0
	for _, w := range words {
		name, value, named := strings.Cut(w, "=")
		if named && slices.ContainsFunc(p.Arguments, func(a Argument) bool { return a.Name == name }) {
			m[name] = value
			continue
		}
		for next < len(p.Arguments) && m[p.Arguments[next].Name] != "" {
			next++
		}
		if next == len(p.Arguments) {
			return nil, fmt.Errorf("/%s.%s takes %d arguments: %s", p.Server, p.Name, len(p.Arguments), p.Usage())
		}
		m[p.Arguments[next].Name] = w
	}
	for _, a := range p.Arguments {
		if a.Required && m[a.Name] == "" {
			return nil, fmt.Errorf("/%s.%s needs the argument %s: /%[1]s.%[2]s %[4]s", p.Server, p.Name, a.Name, p.Usage())
		}
	}
	return m, nil
}

// ResourceTools are the tools by which a model finds and reads resources, none if no server has some.
func (all *Servers) ResourceTools(dir string, now Approvals) []tool.Tool {
	if len(all.Resources(dir)) == 0 {
		return nil
	}
	return []tool.Tool{&listTool{all, dir}, &readTool{all, dir, now}}
}
