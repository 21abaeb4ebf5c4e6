package git

import (
	"path"
	"regexp"
	"strings"
)

// MatchesGlob reports whether a relative path fits a glob as rg takes it: one
// without a slash is for names.
func MatchesGlob(glob, rel string) bool {
	exclude := strings.HasPrefix(glob, "!")
	glob = strings.TrimPrefix(glob, "!")
	if !strings.Contains(glob, "/") {
		rel = path.Base(rel)
	}
	for _, g := range braces(strings.TrimPrefix(glob, "/")) {
		if match, err := regexp.Compile("^" + GlobExpr(g) + "$"); err == nil && match.MatchString(rel) {
			return !exclude
		}
	}
	return exclude
}

// braces writes "{a,b}" out.
func braces(glob string) []string {
	open := strings.IndexByte(glob, '{')
	if open < 0 {
		return []string{glob}
	}
	end := strings.IndexByte(glob[open:], '}')
	if end < 0 {
		return []string{glob}
	}
	var out []string
	for part := range strings.SplitSeq(glob[open+1:open+end], ",") {
		for _, rest := range braces(glob[open+end+1:]) {
			out = append(out, glob[:open]+part+rest)
		}
	}
	return out
}
