package draw

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/transcript"
)

// long is a view of n items such as they are: messages, commands, patches.
func long(n int) *View {
	v := NewView(colours)
	v.SetSize(120, 50)
	for i := range n {
		v.Put(typical(i))
	}
	return v
}

func typical(i int) *transcript.Item {
	switch i % 4 {
	case 0:
		return windowCommand(i, transcript.Done, numbers(30))
	case 1:
		it := windowCommand(i, transcript.Done, "")
		it.Changes = []transcript.Change{{Path: "/w/a.go", Kind: "update", Added: 9, Diff: "@@ -1 +1,9 @@\n a\n" + strings.Repeat("+more\n", 9)}}
		return it
	}
	return message(i, "## Step\n\nSome **words** about `code`, and a list:\n\n- one\n- two\n\n```go\nfunc main() { return 1 }\n```\n")
}

// BenchmarkPutAndLines is one piece of text for the last message, and a frame.
func BenchmarkPutAndLines(b *testing.B) {
	for _, n := range []int{12, 10_000} {
		b.Run(fmt.Sprint(n, " cells"), func(b *testing.B) {
			v := long(n)
			it := message(n, "")
			it.Status = transcript.Open
			var text strings.Builder
			for i := 0; b.Loop(); i++ {
				if i%2000 == 0 {
					text = strings.Builder{} // a message of 2,000 pieces
				}
				text.WriteString("word ")
				if i%12 == 11 {
					text.WriteString("\n\n")
				}
				it.Text = text.String()
				v.Put(it)
				v.Lines(now)
			}
		})
	}
}

// BenchmarkResize is a new width and a frame. Both views end with the same kinds
// of cells.
func BenchmarkResize(b *testing.B) {
	for _, n := range []int{12, 10_000} {
		b.Run(fmt.Sprint(n, " cells"), func(b *testing.B) {
			v := long(n)
			for i := 0; b.Loop(); i++ {
				v.SetSize(80+i%2, 50)
				v.Lines(now)
			}
		})
	}
}

// BenchmarkScroll pages up and down through everything.
func BenchmarkScroll(b *testing.B) {
	v := long(10_000)
	for i := 0; b.Loop(); i++ {
		if i%2000 < 1000 {
			v.PageUp()
		} else {
			v.PageDown()
		}
		v.Lines(now)
	}
}

// BenchmarkMemory reports what 10,000 cells take after one has been at all of
// them, the items themselves not counted.
func BenchmarkMemory(b *testing.B) {
	items := make([]*transcript.Item, 10_000)
	for i := range items {
		items[i] = typical(i)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		v := NewView(colours)
		v.SetSize(120, 50)
		for _, it := range items {
			v.Put(it)
		}
		v.Top()
		for !v.Following() {
			v.PageDown()
			v.Lines(time.Time{})
		}
		b.ReportMetric(float64(int64(heap())-int64(before))/1e6, "MB")
		runtime.KeepAlive(v)
	}
	runtime.KeepAlive(items)
}
