// Package prompt holds the words that a model is sent: the instructions, as
// Markdown files beside the code, and the description of its environment.
//
// It is pure, and knows nothing but the settings. The instructions are the same for
// all requests of a conversation, so that a provider's cache holds; what changes
// is announced in a message of its own (see [Environment]).
package prompt

import _ "embed"

var (
	//go:embed base.md
	base string
	//go:embed patch.md
	byPatch string
	//go:embed edit.md
	byEdit string
	//go:embed gpt-5.md
	gpt5 string
	//go:embed claude.md
	claude string
	//go:embed gemini.md
	gemini string
	//go:embed other.md
	other string
)

// families are the instructions that only a family of models gets.
var families = map[string]string{"gpt-5": gpt5, "gpt": gpt5, "claude": claude, "gemini": gemini}

// Instructions returns the instructions for a family of models. Patches says
// that it is offered apply_patch, and not edit and write.
func Instructions(family string, patches bool) string {
	text := base
	if patches {
		text += byPatch
	} else {
		text += byEdit
	}
	if own, ok := families[family]; ok {
		return text + own
	}
	return text + other
}
