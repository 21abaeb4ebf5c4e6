package draw

import "strings"

// CodeBlocks are the fenced blocks of a text.
func CodeBlocks(text string) []string {
	var list []string
	var block strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			fence = mark[:3]
			block.Reset()
		case fence != "" && strings.HasPrefix(mark, fence) && strings.Trim(mark, fence[:1]) == "":
			fence = ""
			list = append(list, block.String())
		case fence != "":
			block.WriteString(line)
		}
	}
	return list
}
