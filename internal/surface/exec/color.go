package exec

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A style is how a line stands out on a screen that has colours: the number
// that a terminal knows it by.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// put gives each line the style by itself: pagers forget it at the end of one.
func (st style) put(s string) string {
	if st == plain {
		return s
	}
	on := "\x1b[" + string(st) + "m"
	return on + strings.ReplaceAll(s, "\n", "\x1b[0m\n"+on) + "\x1b[0m"
}

// styled is a text for the screen: what would move the cursor taken out, and
// in colour if that is wanted.
func (pr *printer) styled(st style, s string) string {
	if !pr.o.Color {
		st = plain
	}
	return st.put(safetext.Strip(s))
}

func statusStyle(s transcript.Status) style {
	switch s {
	case transcript.Failed:
		return red
	case transcript.Interrupted, transcript.Declined:
		return yellow
	}
	return dim
}

func endStyle(r p.EndReason) style {
	if r == p.Failed || r == p.Crashed {
		return red
	}
	return yellow
}

var stepStyles = map[string]style{"completed": green, "in_progress": bold}
