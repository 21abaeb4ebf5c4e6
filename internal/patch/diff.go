package patch

import (
	"slices"
	"sort"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// unified returns the unified diff of two texts without its file header; empty
// if they are equal.
func unified(before, after string, context int) string {
	if before == after {
		return ""
	}
	text, err := udiff.ToUnified("a", "b", before, lineEdits(before, after), context)
	if err != nil {
		// Our edits would have to overlap. Everything replaced is a true diff too.
		text, _ = udiff.ToUnified("a", "b", before, []udiff.Edit{{Start: 0, End: len(before), New: after}}, context)
	}
	const header = "--- a\n+++ b\n"
	return strings.TrimPrefix(text, header)
}

// lineEdits finds the differences of two texts. The library gives up on detail
// after some 50 differences, so the texts are first cut at the lines that are
// unique in both and stand in the same order.
func lineEdits(before, after string) []udiff.Edit {
	a, b := newSource(before).lines, newSource(after).lines
	var edits []udiff.Edit
	offset, i, j := 0, 0, 0
	cut := func(toA, toB int) {
		old, new := strings.Join(a[i:toA], ""), strings.Join(b[j:toB], "")
		if old != new {
			for _, e := range udiff.Lines(old, new) {
				e.Start += offset
				e.End += offset
				edits = append(edits, e)
			}
		}
		offset += len(old)
		i, j = toA, toB
	}
	for _, pair := range uniquePairs(a, b) {
		cut(pair[0], pair[1])
	}
	cut(len(a), len(b))
	return edits
}

// uniquePairs returns the longest rising sequence of places (in a, in b) of
// lines that occur exactly once in each.
func uniquePairs(a, b []string) [][2]int {
	places := map[string][2]int{} // line to its place plus 1 in a and b; -1: more than one
	note := func(lines []string, side int) {
		for i, line := range lines {
			at := places[line]
			if at[side] == 0 {
				at[side] = i + 1
			} else {
				at[side] = -1
			}
			places[line] = at
		}
	}
	note(a, 0)
	note(b, 1)
	var pairs [][2]int
	for i, line := range a {
		if at := places[line]; at[0] > 0 && at[1] > 0 {
			pairs = append(pairs, [2]int{i, at[1] - 1})
		}
	}
	return longestRise(pairs)
}

// longestRise keeps, of pairs that rise in their first number, as many as
// possible that rise in the second as well.
func longestRise(pairs [][2]int) [][2]int {
	ends := []int{}                   // ends[n]: the pair with the lowest second number that ends a rise of n+1
	before := make([]int, len(pairs)) // the pair before, -1 for none
	for i, p := range pairs {
		n := sort.Search(len(ends), func(k int) bool { return pairs[ends[k]][1] >= p[1] })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}

	var rise [][2]int
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		rise = append(rise, pairs[i])
	}
	slices.Reverse(rise)
	return rise
}
