package view

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// maxImage is the most bytes that a file with an image may have.
const maxImage = 20 << 20

// Contents is what a client says, in the words of the engine.
func Contents(input []wire.UserInput, cwd string) ([]p.Content, error) {
	var list []p.Content
	for i, in := range input {
		switch in.Type {
		case "text":
			if in.Text == nil {
				return nil, jsonrpc.Errorf(jsonrpc.CodeParams, "input[%d]: text is missing", i)
			}
			if *in.Text != "" {
				list = append(list, p.Content{Type: p.ContentText, Text: *in.Text})
			}
		case "image":
			list = append(list, p.Content{Type: p.ContentImage, ImageURL: in.URL})
		case "localImage":
			url, err := imageURL(in.Path, cwd)
			if err != nil {
				return nil, jsonrpc.Errorf(jsonrpc.CodeParams, "input[%d]: %v", i, err)
			}
			list = append(list, p.Content{Type: p.ContentImage, ImageURL: url})
		case "skill", "mention":
			list = append(list, p.Content{Type: p.ContentText, Text: fmt.Sprintf("(%s %s: %s)", in.Type, in.Name, in.Path)})
		default:
			return nil, jsonrpc.Errorf(jsonrpc.CodeParams, "input[%d]: the type %q is not supported", i, in.Type)
		}
	}
	if len(list) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeRequest, "input must not be empty")
	}
	return list, nil
}

// imageURL reads an image file.
func imageURL(path, cwd string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", errors.New("the image cannot be read")
	case !info.Mode().IsRegular():
		return "", errors.New("the image is not a file")
	case info.Size() > maxImage:
		return "", fmt.Errorf("the image has more than %d bytes", maxImage)
	}
	data, err := os.ReadFile(path)
	kind := http.DetectContentType(data)
	if err != nil || !strings.HasPrefix(kind, "image/") {
		return "", errors.New("the image cannot be read")
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}
