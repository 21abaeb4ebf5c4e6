package composer

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/surface/tui/composer/edit"
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

// message returns a text as it is sent: pastes written out, images by their
// labels, and the images' paths.
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
