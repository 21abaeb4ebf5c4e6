package transcript

import "strings"

// openOutput is how much is kept of what a command has printed while it runs.
// Its beginning is in the result when it has ended.
const openOutput = 1 << 20

// bound drops the beginning of a command's output when there is twice as much as
// is kept, so that one that prints without end costs memory within bounds, and a piece of
// output no more than its own length.
func (it *Item) bound() {
	all := it.grown.String()
	if len(all) <= 2*openOutput {
		return
	}
	from := len(all) - openOutput
	if i := strings.IndexByte(all[from:], '\n'); i >= 0 && i < openOutput/2 {
		from += i + 1 // whole lines, if they are not endless
	}
	it.Omitted += int64(from)
	it.grown.Reset()
	it.grown.WriteString(all[from:])
	it.Output = it.grown.String()
}
