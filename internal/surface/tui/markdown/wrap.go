package markdown

import "github.com/charmbracelet/x/ansi"

func ansiWrap(s string, width int) string { return ansi.Wrap(s, max(1, width), "") }
