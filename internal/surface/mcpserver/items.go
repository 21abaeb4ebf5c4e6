package mcpserver

import (
	"errors"
	"fmt"
	"path/filepath"

	tools "github.com/fermata-agent/fermata/internal/tool" // tool is one of MCP here
	p "github.com/fermata-agent/fermata/protocol"
)

// An item is a part of a message, in either of the forms that clients use: the
// fields beside the type, or in data.
type item struct {
	Type string `json:"type"`
	itemData
	Data *itemData `json:"data,omitempty"`
}

type itemData struct {
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Path     string `json:"path,omitempty"`
}

// contents makes the parts of a message ours. Files are relative to dir.
func contents(items []item, dir string) ([]p.Content, error) {
	var list []p.Content
	for _, it := range items {
		d := it.itemData
		if it.Data != nil {
			d = *it.Data
		}
		switch it.Type {
		case "text":
			list = append(list, p.Content{Type: p.ContentText, Text: d.Text})
		case "image":
			if d.ImageURL == "" { // a service that refuses it would refuse the conversation from then on
				return nil, errors.New("image_url of an image is missing")
			}
			list = append(list, p.Content{Type: p.ContentImage, ImageURL: d.ImageURL})
		case "localImage", "local_image":
			name := d.Path
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			image, err := tools.ReadImage(name)
			if err != nil {
				return nil, err
			}
			list = append(list, image)
		default:
			return nil, fmt.Errorf("there are no items of type %q", it.Type)
		}
	}
	return list, nil
}
