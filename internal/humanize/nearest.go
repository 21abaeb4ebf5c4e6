package humanize

import "strings"

// Nearest returns the candidate that a mistyped name most likely stands for, or
// nothing if none is near.
func Nearest(name string, candidates []string) string {
	best, least := "", len(name)/3+1
	for _, c := range candidates {
		if d := Distance(plain(name), plain(c)); d <= min(least, 3) && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}

// plain makes names that differ only in how they are spelt the same.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// Distance counts the letters to insert, remove, change or swap with their
// neighbour to get from a to b.
func Distance(a, b string) int {
	r, s := []rune(a), []rune(b)
	if d := len(r) - len(s); d > 3 || d < -3 {
		return max(d, -d) // too far anyway; a key may be very long
	}
	before, last, row := make([]int, len(s)+1), make([]int, len(s)+1), make([]int, len(s)+1)
	for j := range last {
		last[j] = j
	}
	for i := range r {
		row[0] = i + 1
		for j := range s {
			cost := 1
			if r[i] == s[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && r[i] == s[j-1] && r[i-1] == s[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(s)]
}
