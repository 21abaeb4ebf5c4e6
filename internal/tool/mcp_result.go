package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// mcpContent is a piece of what an MCP server answers.
type mcpContent struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // in base64
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`  // of a resource_link
	Name     string `json:"name"` // the same
	Resource *struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"` // in base64
	} `json:"resource"`
}

// MCPContent returns what an MCP server's answer says to a model: its text, and its
// images. Structured content counts if there is nothing else; servers repeat it as text.
func MCPContent(result json.RawMessage) (text string, images []protocol.Content) {
	var r struct {
		Content    []mcpContent    `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return string(result), nil
	}
	var parts []string
	for _, c := range r.Content {
		part, image := c.show()
		if image != nil {
			images = append(images, *image)
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 && string(r.Structured) != "null" {
		parts = append(parts, string(r.Structured))
	}
	return strings.Join(parts, "\n"), images
}

// show returns a piece as text, and as an image if it is one that models take.
func (c mcpContent) show() (string, *protocol.Content) {
	switch c.Type {
	case "text":
		return c.Text, nil
	case "image":
		return showBlob("image", c.MIMEType, c.Data)
	case "resource":
		if c.Resource == nil {
			return "", nil
		}
		if c.Resource.Blob != "" {
			text, image := showBlob("resource "+c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob)
			return text, image
		}
		return fmt.Sprintf("[resource %s]\n%s", c.Resource.URI, c.Resource.Text), nil
	case "resource_link":
		return fmt.Sprintf("[resource %s: %s]", c.Name, c.URI), nil
	}
	return fmt.Sprintf("[%s %s, which cannot be shown]", c.Type, c.MIMEType), nil
}

// showBlob shows data that is not text.
func showBlob(what, mime, data string) (string, *protocol.Content) {
	if data == "" { // services refuse an image without data, and with it the whole conversation
		return fmt.Sprintf("[%s: %s, without data]", what, mime), nil
	}
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if len(data) <= imageMax {
			return "[" + what + "]", &protocol.Content{Type: protocol.ContentImage, ImageURL: "data:" + mime + ";base64," + data}
		}
	}
	return fmt.Sprintf("[%s: %s, %d bytes, which cannot be shown]", what, mime, len(data)*3/4), nil
}
