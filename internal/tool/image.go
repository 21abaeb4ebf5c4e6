package tool

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/rootfs"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// ViewImage shows the model an image file.
type ViewImage struct {
	// Secret says which paths must not be read, see Files. May be nil.
	Secret func(path string) bool
}

var imageSchema = &args.Schema{
	Tool: "view_image", Bare: "path", Example: `{"path":"docs/screen.png"}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Required: true, Description: "The file, relative to the working directory or absolute.", Aliases: pathNames},
	},
}

// Spec describes the tool to the model.
func (ViewImage) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "view_image", Kind: protocol.CallFunction,
		Description: imageSchema.Describe("Shows you an image file of this machine: PNG, JPEG, GIF or WebP."),
		Parameters:  imageSchema.JSON(), Strict: imageSchema.Strict(),
	}
}

// ReadOnly reports that images may be looked at side by side.
func (ViewImage) ReadOnly() bool { return true }

// Run reads the image.
func (v ViewImage) Run(_ context.Context, call Call) Result {
	a, wrong := call.parse(imageSchema)
	if wrong != nil {
		return *wrong
	}
	if a.String("path") == "" {
		return failure(imageSchema.Error("path is empty"))
	}
	name := within(call.Settings.Cwd, a.String("path"))
	image, err := readImage(name, func(real string) error {
		if v.Secret != nil && v.Secret(real) {
			return errSecret
		}
		return nil
	})
	if err != nil {
		return failure(err.Error())
	}
	return Result{Output: protocol.ToolOutput{Output: "image " + name, Content: []protocol.Content{image}}}
}

// imageMax is the largest file that is sent as an image.
const imageMax = 20 << 20

// ReadImage makes content of an image file.
func ReadImage(name string) (protocol.Content, error) { return readImage(name, nil) }

// readImage is ReadImage if check, which may be nil, allows the file.
func readImage(name string, check func(real string) error) (protocol.Content, error) {
	f, err := rootfs.OpenRegular(name, check)
	if errors.Is(err, rootfs.ErrNotRegular) {
		return protocol.Content{}, fmt.Errorf("image %s: not a file", name)
	}
	if err != nil {
		return protocol.Content{}, fmt.Errorf("image %s: %w", name, plainError(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 { // the kernel's own files as well, some of which never end
		return protocol.Content{}, fmt.Errorf("image %s: the file is empty", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, imageMax+1))
	switch {
	case err != nil:
		return protocol.Content{}, fmt.Errorf("image: %w", err)
	case len(b) > imageMax:
		return protocol.Content{}, fmt.Errorf("image %s: larger than %d MiB", name, imageMax>>20)
	}
	kind := http.DetectContentType(b)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return protocol.Content{}, fmt.Errorf("image %s: neither PNG, JPEG, GIF nor WebP", name)
	}
	return protocol.Content{Type: protocol.ContentImage, ImageURL: "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b)}, nil
}
