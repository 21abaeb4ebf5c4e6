package composer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	p "github.com/fermata-agent/fermata/protocol"
)

// A paste beyond one of these is folded.
const (
	foldLines = 10
	foldRunes = 1000
)

func (c *Composer) paste(text string) {
	text = edit.Clean(text)
	if c.search != nil {
		c.search.add(strings.Join(strings.Fields(text), " "))
		return
	}
	c.past.leave()
	c.closePopup()
	if file, ok := imagePath(text); ok {
		c.AddImage(file)
		return
	}
	label := foldLabel(text)
	if label == "" {
		c.buf.Insert(text)
		return
	}
	c.pastes++
	c.buf.InsertFold(edit.Fold{Label: fmt.Sprintf("[pasted %s #%d]", label, c.pastes), Text: text})
}

// foldLabel says how much a paste is, or "" if it is short enough to be seen.
func foldLabel(text string) string {
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	if lines > foldLines {
		return fmt.Sprintf("%d lines", lines)
	}
	if n := utf8.RuneCountInString(text); n > foldRunes {
		return fmt.Sprintf("%d characters", n)
	}
	return ""
}

var imageSuffixes = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// imagePath reports whether a paste is nothing but the path of an image. That is
// how a terminal hands over a file that was dropped on it: quoted, with
// backslashes before spaces, or as a URL.
func imagePath(text string) (string, bool) {
	s := strings.TrimSpace(text)
	if s == "" || len(s) > 4096 || strings.Contains(s, "\n") || !slices.Contains(imageSuffixes, strings.ToLower(path.Ext(strings.Trim(s, `'"`)))) {
		return "", false
	}
	switch {
	case strings.HasPrefix(s, "file://"):
		u, err := url.Parse(s)
		if err != nil {
			return "", false
		}
		s = u.Path
	case len(s) > 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0]:
		s = s[1 : len(s)-1]
	case strings.Contains(strings.ReplaceAll(s, `\ `, ""), " "):
		return "", false // words, not a path
	default:
		s = strings.NewReplacer(`\ `, " ", `\(`, "(", `\)`, ")", `\'`, "'").Replace(s)
	}
	return s, filepath.IsAbs(s)
}

// imageLabel is what newLabel makes.
var imageLabel = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[image #(\d+)(?: [^\]\n]*)?\]`) })

func (c *Composer) newLabel(file string) string {
	c.images++
	if IsURL(file) {
		return fmt.Sprintf("[image #%d]", c.images)
	}
	return fmt.Sprintf("[image #%d %s]", c.images, edit.Clean(path.Base(filepath.ToSlash(file))))
}

// IsURL reports whether an image is named by its URL, not by its path.
func IsURL(image string) bool {
	return strings.HasPrefix(image, "data:") || strings.HasPrefix(image, "https://") || strings.HasPrefix(image, "http://")
}

// WithImages returns a message as a text of which SetText makes what it was. The
// images belong to the labels in the text, in their order; those that have none are
// given one.
func (c *Composer) WithImages(text string, images []string) string {
	labels := imageLabel().FindAllStringSubmatch(text, len(images))
	for i, image := range images {
		if i >= len(labels) {
			label := c.newLabel(image)
			c.buf.Know(edit.Fold{Label: label, Text: image, Image: true})
			text = strings.TrimLeft(text+" "+label, " ")
			continue
		}
		c.buf.Know(edit.Fold{Label: labels[i][0], Text: image, Image: true})
		if n, err := strconv.Atoi(labels[i][1]); err == nil {
			c.images = max(c.images, n) // so that it stays the only one of its name
		}
	}
	return text
}

// message returns a text as it is sent: pastes written out, images by their
// labels, and the images.
func (c *Composer) message(raw string) (text string, images []string) {
	text = c.buf.Expand(raw, func(f edit.Fold) string {
		if !f.Image {
			return f.Text
		}
		images = append(images, f.Text)
		return f.Label
	})
	return strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n"), images
}

// Written is a message as a text of which SetText makes what it was.
func (c *Composer) Written(content []p.Content) string {
	var images []string
	for _, part := range content {
		if part.Type == p.ContentImage && part.Attached == "" {
			images = append(images, part.ImageURL)
		}
	}
	return c.WithImages(p.Written(content), images)
}

// Readers make the content of a message. Each may be nil.
type Readers struct {
	// Image reads the file of an image.
	Image func(file string) (p.Content, error)
	// Expand makes a message of what was written: see package message.
	Expand func(ctx context.Context, content []p.Content) ([]p.Content, error)
}

// Content is that of the message. It does I/O.
func (s Submit) Content(ctx context.Context, r Readers) (content []p.Content, err error) {
	content = p.Text(s.Text)
	if r.Expand != nil {
		if content, err = r.Expand(ctx, content); err != nil {
			return nil, err
		}
	}
	for _, file := range s.Images {
		c, err := r.image(file)
		if err != nil {
			return nil, err
		}
		content = append(content, c)
	}
	return content, nil
}

// image makes content of the path of an image, or of its URL, which those have that were returned.
func (r Readers) image(file string) (p.Content, error) {
	switch {
	case IsURL(file):
		return p.Content{Type: p.ContentImage, ImageURL: file}, nil
	case r.Image == nil:
		return p.Content{}, errors.New("images cannot be read here")
	}
	return r.Image(file)
}
