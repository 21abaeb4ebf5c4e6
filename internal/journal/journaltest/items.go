package journaltest

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/journal"
)

func itemsAreVisibleAtOnce(e *env) {
	e.syncTime = time.Second
	j := e.create()
	r := j.Follow(0)
	s := j.Open("s")
	s.Write("1.1.0", "message", "Hel")
	e.settleText()
	_, chunks := e.next(r)
	e.equal("first", chunks, []journal.Chunk{chunk("1.1.0", "message", 0, "Hel")})
	s.Write("1.1.0", "message", "lo, ")
	s.Write("1.1.0", "message", "world")
	e.settleText()
	_, chunks = e.next(r)
	e.equal("second", chunks, []journal.Chunk{chunk("1.1.0", "message", 3, "lo, world")})
	e.nothing(r)

	done := make(chan []journal.Chunk)
	go func() {
		_, chunks, _ := r.Next(e.Context())
		done <- chunks
	}()
	e.settle()
	s.Write("1.1.0", "message", "!")
	e.equal("third", <-done, []journal.Chunk{chunk("1.1.0", "message", 12, "!")})
	e.must(j.Close())
}

func lateReaderGetsOneChunk(e *env) {
	j := e.create()
	s := j.Open("s")
	for _, w := range []string{"out:", "one ", "two ", "three "} {
		s.Write("1.1.0", "stdout", w)
	}
	s.Write("1.1.0", "stderr", "oops ")
	s.Write("1.1.0", "stderr", "oops")
	s.Write("1.1.0", "stdout", " four")
	want := []journal.Chunk{
		chunk("1.1.0", "stdout", 0, "out:one two three "),
		chunk("1.1.0", "stderr", 18, "oops oops"),
		chunk("1.1.0", "stdout", 27, " four"),
	}
	e.equal("OpenItems", e.openItems(j), want)
	e.settleText()
	_, chunks := e.next(j.Follow(0))
	e.equal("Next", chunks, want)
	e.must(j.Close())
}

func itemsOfAScopeFollowEachOther(e *env) {
	j := e.create()
	r := j.Follow(0)
	s, o := j.Open("s"), j.Open("o")
	s.Write("1.1.0", "message", "first")
	s.Write("1.1.1", "message", "second")
	o.Write("1.2.0", "message", "other")
	s.Write("1.1.2", "message", "third")
	e.settleText()
	_, chunks := e.next(r)
	e.equal("first of each scope", chunks, []journal.Chunk{chunk("1.1.0", "message", 0, "first"), chunk("1.2.0", "message", 0, "other")})
	s.Write("1.1.1", "message", ", more")
	e.settleText()
	e.nothing(r)

	e.syncTime = time.Second
	j.Append(closing("one", "1.1.0"))
	e.nothing(r)
	e.settle()
	recs, _ := e.next(r)
	e.equal("record first", kinds(recs), []string{"1:one"})
	_, chunks = e.next(r)
	e.equal("then the second", chunks, []journal.Chunk{chunk("1.1.1", "message", 0, "second, more")})
	e.nothing(r)
	j.Append(closing("two", "1.1.1"))
	e.settle()
	e.next(r)
	_, chunks = e.next(r)
	e.equal("then the third", chunks, []journal.Chunk{chunk("1.1.2", "message", 0, "third")})
	e.must(j.Close())
}

func bytesGoWhenTheRecordComes(e *env) {
	e.syncTime = time.Second
	j := e.create()
	s := j.Open("s")
	s.Write("1.1.0", "message", "text")
	e.settleText()
	j.Append(closing("done", "1.1.0"))
	e.equal("OpenItems", len(e.openItems(j)), 0)
	_, chunks := e.next(j.Follow(0))
	e.equal("until it is durable", chunks, []journal.Chunk{chunk("1.1.0", "message", 0, "text")})
	r := j.Follow(0)
	e.settle()
	recs, chunks := e.next(r)
	e.equal("afterwards", kinds(recs), []string{"1:done"})
	e.equal("afterwards", len(chunks), 0)
	e.nothing(r)
	e.nothing(j.Follow(1))
	e.must(j.Close())
}

func prefixClosesAll(e *env) {
	j := e.create()
	s, o := j.Open("s"), j.Open("o")
	s.Write("3.1.0", "message", "a")
	s.Write("3.2.0", "message", "b")
	o.Write("3.10.0", "stdout", "c")
	o.Write("33.1.0", "stdout", "not this")
	o.Write("3", "stdout", "nor this")
	j.Append(closing("end", "3."))
	e.equal("OpenItems", e.openItems(j), []journal.Chunk{
		chunk("33.1.0", "stdout", 0, "not this"),
		chunk("3", "stdout", 0, "nor this"),
	})
	for _, item := range []string{"3.1.0", "3.2.0", "3.10.0", "3.99.0"} {
		if s.Write(item, "message", "late") || o.Write(item, "message", "late") {
			e.Errorf("wrote to %s, which is closed", item)
		}
	}
	e.must(j.Close())
}

func lateWritesAreRefused(e *env) {
	e.syncTime = time.Second
	j := e.create()
	s, o := j.Open("s"), j.Open("o")
	s.Write("1.1.0", "message", "text")
	j.Append(closing("done", "1.1.0"), closing("never written", "1.1.7"))
	for _, when := range []string{"before", "after"} {
		for _, item := range []string{"1.1.0", "1.1.7"} {
			if s.Write(item, "message", "late") || o.Write(item, "message", "late") {
				e.Errorf("wrote to %s %s its end was durable", item, when)
			}
		}
		e.settle()
	}
	if !s.Write("1.1.1", "message", "next") {
		e.Error("could not write to the next item")
	}
	s.Seal()
	if s.Write("1.1.1", "message", "late") || s.Write("1.1.2", "message", "late") {
		e.Error("wrote to a sealed scope")
	}
	if !o.Write("1.2.0", "message", "other") {
		e.Error("could not write to another scope")
	}
	e.equal("OpenItems", e.openItems(j), []journal.Chunk{
		chunk("1.1.1", "message", 0, "next"),
		chunk("1.2.0", "message", 0, "other"),
	})
	e.must(j.Close())
}

func sealedScopeKeepsWhatItHas(e *env) {
	j := e.create()
	s := j.Open("s")
	s.Write("1.1.0", "message", "text")
	s.Seal()
	want := []journal.Chunk{chunk("1.1.0", "message", 0, "text")}
	e.equal("OpenItems", e.openItems(j), want)
	e.settleText()
	_, chunks := e.next(j.Follow(0))
	e.equal("Next", chunks, want)
	j.Append(closing("done", "1.1.0"))
	e.equal("OpenItems", len(e.openItems(j)), 0)
	e.must(j.Close())
}

// What is written is kept byte for byte, also what is not UTF-8.
func bytesAreKept(e *env) {
	j := e.create()
	s := j.Open("s")
	text := "ok \xff\xfe \x00\x1b[0m\r\n" + strings.Repeat("\x80", 200<<10) + "\xe2\x82"
	same := func(what string, chunks []journal.Chunk) {
		e.Helper()
		if len(chunks) != 1 || chunks[0] != chunk("1.1.0", "stdout", 0, text) {
			e.Errorf("%s: %d chunks, not what was written", what, len(chunks))
		}
	}
	s.Write("1.1.0", "stdout", text)
	s.Write("1.1.0", "stdout", "")
	e.settleText()
	_, chunks := e.next(j.Follow(0))
	same("Next", chunks)
	same("OpenItems", e.openItems(j))
	e.must(j.Close())
	k := e.open()
	same("reopened", e.openItems(k))
	e.must(k.Close())
}

// What is beyond a mebibyte at the start and one at the end is left out, and
// the offsets say so. Nothing is cut within a rune.
func largeItemLosesItsMiddle(e *env) {
	j := e.create()
	r := j.Follow(0)
	s := j.Open("s")
	var all strings.Builder
	for all.Len() < 5<<20 {
		text := strings.Repeat("ü–🙂x", 997)
		all.WriteString(text)
		s.Write("1.1.0", "stdout", text)
		if all.Len() < 100<<10 {
			e.settleText()
			e.next(r)
		}
	}
	e.settleText()
	_, chunks := e.next(r)
	late := e.openItems(j)
	var kept int
	for _, list := range [][]journal.Chunk{chunks, late} {
		kept = 0
		if len(list) != 2 {
			e.Fatalf("%d chunks, want 2", len(list))
		}
		for _, c := range list {
			end := c.Offset + int64(len(c.Text))
			if end > int64(all.Len()) || all.String()[c.Offset:end] != c.Text || !utf8.ValidString(c.Text) {
				e.Errorf("chunk at %d is wrong", c.Offset)
			}
			kept += len(c.Text)
		}
		if last := list[1]; last.Offset+int64(len(last.Text)) != int64(all.Len()) {
			e.Errorf("the end is missing")
		}
	}
	if late[0].Offset != 0 || kept < 1900<<10 || kept > 2<<20 {
		e.Errorf("kept %d bytes from %d on", kept, late[0].Offset)
	}
	j.Append(closing("done", "1."))
	e.must(j.Close())
}
