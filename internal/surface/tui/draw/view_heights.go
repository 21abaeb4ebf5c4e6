package draw

// heights is a list of numbers that knows the sum of any of its beginnings: a
// Fenwick tree. Adding, changing and summing take logarithmic time.
type heights struct {
	tree   []int // tree[i-1] is the sum of the numbers (i - lowest bit of i, i]
	values []int
}

func (h *heights) add(n int) {
	i := len(h.tree) + 1
	h.values = append(h.values, n)
	h.tree = append(h.tree, n+h.sum(i-1)-h.sum(i-i&-i))
}

func (h *heights) set(at, n int) {
	change := n - h.values[at]
	if change == 0 {
		return
	}
	h.values[at] = n
	for i := at + 1; i <= len(h.tree); i += i & -i {
		h.tree[i-1] += change
	}
}

// sum is the sum of the first n numbers.
func (h *heights) sum(n int) int {
	total := 0
	for i := n; i > 0; i -= i & -i {
		total += h.tree[i-1]
	}
	return total
}
