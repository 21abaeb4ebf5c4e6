// Package humanize has what messages for people share: numbers of things, and the name that a mistyped one stands for.
package humanize

import (
	"fmt"
	"strings"
)

// Count is a number of things, such as "1 file" and "2 processes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
