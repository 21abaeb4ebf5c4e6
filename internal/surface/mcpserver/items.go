package mcpserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

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
			list = append(list, p.Content{Type: p.ContentImage, ImageURL: d.ImageURL})
		case "localImage", "local_image":
			url, err := readImage(d.Path, dir)
			if err != nil {
				return nil, err
			}
			list = append(list, p.Content{Type: p.ContentImage, ImageURL: url})
		default:
			return nil, fmt.Errorf("there are no items of type %q", it.Type)
		}
	}
	return list, nil
}

func readImage(name, dir string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read image: %w", err)
	}
	kind := http.DetectContentType(b)
	if !strings.HasPrefix(kind, "image/") {
		return "", fmt.Errorf("read image: %s is none", name)
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b), nil
}
