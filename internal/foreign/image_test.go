package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// Images that no service accepts would end the conversation with a refusal: they are left out, and that is said.
func TestImagesThatCannotBeSent(t *testing.T) {
	for url, good := range map[string]bool{
		"data:image/png;base64,eA==":       true,
		"https://example.com/a.png":        true,
		"http://127.0.0.1/a.png":           false,
		"file:///etc/passwd":               false,
		"javascript:alert(1)":              false,
		"data:image/png;base64,":           false,
		"data:image/png;base64,not base64": false,
		"data:image/png;base64,eA":         false,
		"data:image/svg+xml;base64,eA==":   false,
		"data:text/html;base64,eA==":       false,
		"data:image/png,plain":             false,
		"":                                 true, // none
	} {
		c, events := read(t, codexHome(t, meta,
			item(1, fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_image","image_url":%q}]}`, url)),
			said(2, "user", "look")))
		images := 0
		for _, e := range events {
			if m, ok := e.Body.(*p.UserMessage); ok {
				for _, part := range m.Content {
					if part.Type == p.ContentImage {
						images++
					}
				}
			}
		}
		told := strings.Contains(strings.Join(c.Losses, "\n"), "image") && strings.Contains(texts(c), "image that cannot be read")
		if want := good && url != ""; (images == 1) != want || told == good {
			t.Errorf("%q: %d images, told %t", url, images, told)
		}
	}
}
