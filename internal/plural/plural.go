// Package plural writes numbers of things for people.
package plural

import (
	"fmt"
	"strings"
)

// Of is a number of things, such as "1 file" and "2 processes".
func Of(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
