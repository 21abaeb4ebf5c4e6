package exportcmd

import (
	"encoding/json"
	"io"
	"time"

	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A document is a conversation as programs read it.
type document struct {
	Conversation p.ConversationID `json:"conversation"`
	Title        string           `json:"title,omitempty"`
	Cwd          string           `json:"cwd"`
	Provider     string           `json:"provider,omitempty"`
	Model        string           `json:"model,omitempty"`
	Turns        p.TurnID         `json:"turns"`
	Usage        p.Usage          `json:"usage"`
	Items        []item           `json:"items"`
}

type item struct {
	Kind      transcript.Kind   `json:"kind"` // user, message, reasoning, call, background, plan, notice, retry or end
	Turn      p.TurnID          `json:"turn,omitempty"`
	Status    transcript.Status `json:"status"`
	Start     *time.Time        `json:"start,omitempty"`
	End       *time.Time        `json:"end,omitempty"`
	Text      string            `json:"text,omitempty"`
	Images    []string          `json:"images,omitempty"` // data URLs or addresses
	Tool      string            `json:"tool,omitempty"`
	Server    string            `json:"server,omitempty"` // the MCP server that the tool is of
	Arguments string            `json:"arguments,omitempty"`
	Command   []string          `json:"command,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	ExitCode  *int              `json:"exit_code,omitempty"`
	Output    string            `json:"output,omitempty"`
	Changes   []change          `json:"changes,omitempty"`
	Plan      []p.PlanStep      `json:"plan,omitempty"`
}

type change struct {
	Kind string `json:"kind"` // add, delete or update
	Path string `json:"path"`
	Move string `json:"move,omitempty"`
	Diff string `json:"diff,omitempty"`
}

func writeJSON(w io.Writer, c conversation) error {
	d := document{
		Conversation: c.id, Title: c.Title, Cwd: c.Settings.Cwd, Provider: c.Settings.Provider, Model: c.Settings.Model,
		Turns: c.Turn, Usage: c.Usage, Items: []item{},
	}
	for _, it := range c.Items {
		if !hidden(it) {
			d.Items = append(d.Items, jsonOf(it))
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

func jsonOf(it *transcript.Item) item {
	out := item{
		Kind: it.Kind, Turn: it.Turn, Status: it.Status, Text: it.Text, Images: it.Images, Tool: it.Tool, Arguments: it.Arguments,
		Command: it.Command, Cwd: it.Cwd, Output: it.Output, Plan: it.Plan,
	}
	if !it.Start.IsZero() {
		out.Start = &it.Start
	}
	if !it.End.IsZero() {
		out.End = &it.End
	}
	if it.Server != nil {
		out.Server = it.Server.Server
	}
	if len(it.Command) > 0 && !isOpen(it) {
		out.ExitCode = &it.ExitCode
	}
	for _, c := range it.Changes {
		out.Changes = append(out.Changes, change{c.Kind, c.Path, c.Move, c.Diff})
	}
	return out
}
