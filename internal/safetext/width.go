package safetext

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// joined is what is known of the terminal, of which a program has one.
var joined atomic.Bool

// Join says whether the terminal draws characters that belong together, such as
// those of a family of emoji, in the place of one (mode 2027). One that does not say so
// gives each its own columns. Bubble Tea counts the same way, and cuts a line that
// it takes to be wider than the screen.
func Join(on bool) { joined.Store(on) }

// Joined reports what [Join] was given.
func Joined() bool { return joined.Load() }

func method() ansi.Method {
	if Joined() {
		return ansi.GraphemeWidth
	}
	return ansi.WcWidth
}

// Width is the number of columns that s takes. Escape codes take none.
func Width(s string) int {
	if n, ok := asciiWidth(s); ok {
		return n
	}
	return method().StringWidth(s)
}

func asciiWidth(s string) (int, bool) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return 0, false
		}
	}
	return len(s), true
}

// longest is how many bytes of what belongs together are looked at where it is drawn
// side by side: it can be repeated without end.
const longest = 128

// Cluster returns what s, which is not empty, begins with and a person takes for one
// character, and its width.
func Cluster(s string) (string, int) {
	if !Joined() && len(s) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return ansi.FirstGraphemeCluster(s, method())
}
