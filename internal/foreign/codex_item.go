package foreign

import (
	"encoding/json"
	"fmt"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// codexResponseItem is an item in the form of the Responses API.
type codexResponseItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
	Content   []codexPart     `json:"content"`
	Summary   []codexPart     `json:"summary"`
	Action    json.RawMessage `json:"action"`
	Encrypted string          `json:"encrypted_content"`
	Meta      struct {
		Kinds []string `json:"content_item_kinds"`
	} `json:"internal_chat_message_metadata_passthrough"`
}

type codexPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
}

// codexItem makes a step of an item. It reports false for items that are nothing of ours.
func codexItem(payload []byte) (Step, bool) {
	var it codexResponseItem
	if json.Unmarshal(payload, &it) != nil {
		return Step{}, false
	}
	id := it.CallID
	if id == "" {
		id = it.ID
	}
	switch it.Type {
	case "message":
		return it.message()
	case "reasoning":
		s := Step{Kind: Thought, Text: joinParts(it.Summary, "\n\n")}
		if s.Text == "" {
			s.Text = joinParts(it.Content, "")
		}
		if it.Encrypted != "" {
			s.Raw = p.Raw{Wire: "responses", JSON: append(json.RawMessage(nil), payload...)}
		}
		return s, s.Text != "" || it.Encrypted != ""
	case "function_call":
		return Step{Kind: Call, ID: id, Name: it.Name, Input: it.Arguments}, it.Name != ""
	case "custom_tool_call":
		return Step{Kind: Call, ID: id, Name: it.Name, Input: it.Input, Custom: true}, it.Name != ""
	case "local_shell_call":
		return Step{Kind: Call, ID: id, Name: "shell", Input: string(it.Action)}, true
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		s := Step{Kind: Output, ID: id}
		s.Text, s.Images = outputText(it.Output)
		return s, true
	}
	return Step{}, false
}

// codexMessage reads a message whoever wrote it.
func codexMessage(payload []byte) (Step, bool) {
	var it codexResponseItem
	if json.Unmarshal(payload, &it) != nil || it.Type != "message" {
		return Step{}, false
	}
	return Step{Kind: Message, Text: joinParts(it.Content, "")}, true
}

// codexInserted are the beginnings of messages in the user's role that the program wrote.
var codexInserted = []string{"<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions", "<skill>", "<user_shell_command>", "<subagent_notification>"}

func (it codexResponseItem) message() (Step, bool) {
	if it.Role == "assistant" {
		text := joinParts(it.Content, "")
		return Step{Kind: Message, Text: text}, text != ""
	}
	if it.Role != "user" {
		return Step{}, false // instructions
	}
	s := Step{Kind: User}
	var texts []string
	for i, part := range it.Content {
		if len(it.Meta.Kinds) == len(it.Content) && !strings.HasPrefix(it.Meta.Kinds[i], "user.") {
			continue
		}
		text := strings.TrimSpace(part.Text)
		switch {
		case part.ImageURL != "":
			s.Images = append(s.Images, part.ImageURL)
		case strings.HasPrefix(text, "<image name=") || text == "</image>" || text == "":
		case hasAnyPrefix(text, codexInserted):
		default:
			texts = append(texts, part.Text)
		}
	}
	s.Text = strings.Join(texts, "\n")
	return s, s.Text != "" || len(s.Images) > 0
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

func joinParts(parts []codexPart, sep string) string {
	var texts []string
	for _, part := range parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, sep)
}

// outputText reads an output: a string, or a list of texts and images.
func outputText(raw json.RawMessage) (string, []string) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []codexPart
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw), nil
	}
	var images []string
	for _, part := range parts {
		if part.ImageURL != "" {
			images = append(images, part.ImageURL)
		}
	}
	return joinParts(parts, "\n"), images
}

// wholeHunk is a hunk in which every line of a text is added, or removed.
func wholeHunk(text, sign string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	head := fmt.Sprintf("@@ -0,0 +1,%d @@\n", len(lines))
	if sign == "-" {
		head = fmt.Sprintf("@@ -1,%d +0,0 @@\n", len(lines))
	}
	return head + sign + strings.Join(lines, "\n"+sign) + "\n"
}
