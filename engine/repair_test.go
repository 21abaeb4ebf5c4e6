package engine_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// earlier makes lines of a journal such as earlier versions wrote them, which do
// not say what they follow.
func earlier(lines []byte) []byte {
	var all []byte
	link := regexp.MustCompile(`,"of":"[0-9a-f]{8}","prev":"[0-9a-f]{8}","sum":"[0-9a-f]{8}"}`)
	for line := range bytes.Lines(lines) {
		text := link.ReplaceAll(bytes.TrimSuffix(line, []byte("\n")), nil)
		all = fmt.Appendf(all, "%s,\"sum\":\"%08x\"}\n", text, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
	}
	return all
}

// What two writers of an earlier version left, line by line in turns, becomes a
// conversation again.
func TestRepairOfWhatTwoWritersLeft(t *testing.T) {
	home := t.TempDir()
	store := file.New(home, file.Options{})
	e := enginetest.New(t, enginetest.Options{Store: store})
	id := e.Begin()
	say := func(e *enginetest.Engine, text string, calls int) {
		w := e.Watch(id, 0)
		e.Say(id, text)
		for range calls {
			r := e.Request()
			r.Call("c", "work", "{}")
			r.End()
			e.Run().Finish(text)
		}
		e.Request().Answer(text)
		w.Expect("turn_ended completed")
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	say(e, "base", 1)
	files, _ := filepath.Glob(filepath.Join(home, "conversations/*/*/*/*.jsonl"))
	path := files[0]
	read := func() []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(data []byte) {
		os.Remove(path + ".ckpt")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := earlier(read())
	var tails [][][]byte
	for calls, text := range []string{"one", "two"} {
		write(base)
		say(enginetest.New(t, enginetest.Options{Store: store}), text, calls)
		tails = append(tails, bytes.SplitAfter(bytes.TrimSuffix(earlier(read()[len(base):]), []byte("\n")), []byte("\n")))
	}
	mixed := bytes.Clone(base)
	for i := range max(len(tails[0]), len(tails[1])) {
		slices.Reverse(tails) // so that the first of each pair is not always of the same one
		for _, tail := range tails {
			if i < len(tail) {
				mixed = append(append(mixed, bytes.TrimSuffix(tail[i], []byte("\n"))...), '\n')
			}
		}
	}
	write(mixed)

	e = enginetest.New(t, enginetest.Options{Store: store})
	if r, err := e.Check(t.Context(), id); len(r.Problems) == 0 || err != nil {
		t.Fatalf("Check = %+v, %v", r, err)
	}
	words, err := e.Repair(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Check(t.Context(), id); len(r.Problems) > 0 || err != nil {
		t.Errorf("after %q: Check = %+v, %v", words, r, err)
	}
	e.Watch(id, 0).Expect("turn_ended completed")
	aside, err := os.ReadFile(path + ".damaged")
	if err != nil || len(aside)+len(read()) < len(mixed)-len(base) {
		t.Errorf("set aside %d bytes, %v", len(aside), err)
	}
}
