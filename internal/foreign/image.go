package foreign

import (
	"encoding/base64"
	"io"
	"slices"
	"strings"
)

// leftOutImage stands for an image that was left out.
const leftOutImage = "[an image that cannot be read was left out]"

// leaveImagesOut removes images that every service would refuse, and with them all later requests of the conversation.
func (c *Conversation) leaveImagesOut() {
	for i := range c.Steps {
		s := &c.Steps[i]
		before := len(s.Images)
		s.Images = slices.DeleteFunc(s.Images, func(url string) bool { return !isImage(url) })
		if len(s.Images) == before {
			continue
		}
		c.lose("an image was left out: it cannot be read")
		s.Text = strings.TrimPrefix(s.Text+"\n"+leftOutImage, "\n")
	}
}

// imageKinds are those that services accept.
var imageKinds = []string{"png", "jpeg", "gif", "webp"}

// isImage reports whether an image can be sent: it is a whole data URL of a kind that services accept, or an address from which
// the service can get it.
func isImage(url string) bool {
	if strings.HasPrefix(url, "https://") {
		return true
	}
	kind, data, found := strings.Cut(url, ";base64,")
	kind, isData := strings.CutPrefix(kind, "data:image/")
	if !found || !isData || data == "" || !slices.Contains(imageKinds, kind) {
		return false
	}
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	return err == nil
}
