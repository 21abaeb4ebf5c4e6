package wire

import (
	"net/http"
	"regexp"
	"sync"

	"github.com/fermata-agent/fermata/protocol"
)

// reasoningForms are the ways in which services refuse reasoning of an earlier
// response: they do not know it any more, or it was another service's or model's.
var reasoningForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` +
		`item (?:with id )?.?rs_[A-Za-z0-9_]+.{0,60}not found` +
		`|rs_[A-Za-z0-9_]+.{0,80}without its required following item` +
		`|encrypted content.{0,200}could not be (?:verified|decrypted)` +
		`|invalid.{0,3}signature.{0,3} in .{0,3}thinking` +
		`|signature.{0,40}thinking block` +
		`|expected .{0,3}thinking.{0,3} or .{0,3}redacted_thinking` +
		`|thinking.{0,40}blocks.{0,60}cannot be modified` +
		`|(?:corrupted|invalid) thought.?signature|thought signature is not valid` +
		`|reasoning_content.{0,80}(?:must|missing|required|not (?:supported|permitted|allowed)|unexpected|unsupported|unknown|extra)` +
		`|(?:missing|required|unexpected|unsupported|unknown|extra|not support).{0,60}reasoning_(?:content|details)`)
})

// imageForms are the ways in which services refuse an image, or every image.
var imageForms = sync.OnceValue(func() *regexp.Regexp {
	const image = `(?:images?|image_url|input_image|vision|multimodal)`
	const no = `(?:not (?:support|allow|permit|process|valid|a valid)|n't support|unsupported|unknown variant|no endpoints|exceeds?|too (?:large|big|many)|invalid|could not|unable to|cannot|at most \d+|only supported)`
	return regexp.MustCompile(`(?i)\b` + image + `\b.{0,120}` + no + `|` + no + `.{0,80}\b` + image + `\b`)
})

// refusedPart says which items of the history a service refuses, or nothing.
func (c Complaint) refusedPart() protocol.HistoryPart {
	if c.Status == http.StatusTooManyRequests || c.Status == http.StatusUnauthorized || c.Status == http.StatusForbidden {
		return ""
	}
	if c.is("invalid_encrypted_content", "thinking_signature_invalid") || reasoningForms().MatchString(c.allText()) {
		return protocol.PartReasoning
	}
	if c.is("invalid_image", "image_too_large", "image_parse_error", "invalid_image_format", "invalid_image_url", "unsupported_image_media_type", "image_file_too_large") || imageForms().MatchString(c.Message) {
		return protocol.PartImages
	}
	return ""
}
