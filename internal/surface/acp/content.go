package acp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// imageTypes are the images that models take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// promptContent collects the content of a prompt.
type promptContent struct {
	text     strings.Builder
	wasText  bool // the last block was text
	attached []p.Content
}

// contents is what a client says, in the words of the engine: one text in which resources are named where they stand, then what they hold.
func contents(blocks []wire.Block) ([]p.Content, error) {
	var m promptContent
	for i, b := range blocks {
		if err := m.add(b); err != nil {
			return nil, badParams("prompt[%d]: %v", i, err)
		}
	}
	var out []p.Content
	if text := m.text.String(); strings.TrimSpace(text) != "" {
		out = p.Text(text)
	}
	return append(out, m.attached...), nil
}

func (m *promptContent) add(b wire.Block) error {
	isText := false
	switch b.Type {
	case "text":
		if b.Text == nil {
			return fmt.Errorf("a block of text has no text")
		}
		isText = true
		m.addText(*b.Text)
	case "resource_link":
		if b.URI == "" {
			return fmt.Errorf("a link has no uri")
		}
		m.mention(b.Name, b.URI)
	case "resource":
		if b.Resource == nil || b.Resource.URI == "" {
			return fmt.Errorf("a resource has no uri")
		}
		if err := m.addResource(b.Resource); err != nil {
			return err
		}
	case "image":
		if err := m.addImage(b.MimeType, b.Data, ""); err != nil {
			return err
		}
	default:
		return fmt.Errorf("content of the type %q is not offered: see promptCapabilities", b.Type)
	}
	m.wasText = isText
	return nil
}

// addText adds text. Two blocks of text are two lines, unless there is space between them.
func (m *promptContent) addText(text string) {
	before := m.text.String()
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(text)
	if m.wasText && before != "" && text != "" && !unicode.IsSpace(last) && !unicode.IsSpace(first) {
		m.text.WriteByte('\n')
	}
	m.text.WriteString(text)
}

// mention names a resource where it stands.
func (m *promptContent) mention(name, uri string) {
	if name == "" {
		name = path.Base(uri)
		if u, err := url.Parse(uri); err == nil && u.Path != "" {
			name = path.Base(u.Path)
		}
	}
	fmt.Fprintf(&m.text, "[@%s](%s)", strings.NewReplacer("]", "", "\n", " ").Replace(name), uri)
}

func (m *promptContent) addResource(r *wire.Resource) error {
	m.mention("", r.URI)
	switch {
	case r.Text != nil:
		text := fmt.Sprintf("<attached resource=%q>\n%s\n</attached>", r.URI, *r.Text)
		m.attached = append(m.attached, p.Content{Type: p.ContentText, Text: text, Attached: r.URI})
	case slices.Contains(imageTypes, r.MimeType):
		return m.addImage(r.MimeType, r.Blob, r.URI)
	case r.Blob != "":
		return fmt.Errorf("a resource of the type %q that is no text cannot be read by the model; send a resource_link", r.MimeType)
	default:
		return fmt.Errorf("a resource has neither text nor blob")
	}
	return nil
}

func (m *promptContent) addImage(mime, data, attached string) error {
	if !slices.Contains(imageTypes, mime) {
		return fmt.Errorf("an image of the type %q is not supported: use one of %s", mime, strings.Join(imageTypes, ", "))
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return fmt.Errorf("the data of an image is not base64")
	}
	m.attached = append(m.attached, p.Content{Type: p.ContentImage, ImageURL: "data:" + mime + ";base64," + data, Attached: attached})
	return nil
}
