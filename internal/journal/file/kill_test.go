package file_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// writeUntilKilled appends records and writes to an open item, and says what
// somebody who watches has seen: "records N" are visible, "bytes N" of the item.
// (How soon they are seen is tested to the millisecond elsewhere; a busy machine
// may take longer.)
func writeUntilKilled() {
	store := file.New(os.Getenv(homeVar), file.Options{})
	j, err := store.Open(context.Background(), sampleID)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go watchBytes(store)
	s := j.Open("s")
	tick := time.NewTicker(3 * time.Millisecond)
	for n := 0; ; {
		select {
		case <-tick.C:
			text := fmt.Sprint("word ", n, " ")
			s.Write("1.1.0", "message", text)
			n += len(text)
			j.Append(e("a"), e("b"))
		case <-j.Notify():
			seen, err := j.Durable()
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println("records", seen)
		}
	}
}

// watchBytes says how much of the open item is in the file.
func watchBytes(store *file.Store) {
	v, err := store.View(context.Background(), sampleID)
	for range time.Tick(20 * time.Millisecond) {
		var chunks []journal.Chunk
		if err == nil {
			chunks, err = v.OpenItems(context.Background())
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		seen := 0
		for _, c := range chunks {
			seen += len(c.Text)
		}
		fmt.Println("bytes", seen)
	}
}

// After kill -9 everything is there that somebody has seen.
func TestKill(t *testing.T) {
	home, s := lockedHome(t)
	var last uint64
	for range 3 {
		c := command("writer", home)
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		var records uint64
		var bytes int
		for lines := bufio.NewScanner(out); lines.Scan(); {
			_, err1 := fmt.Sscanf(lines.Text(), "records %d", &records)
			_, err2 := fmt.Sscanf(lines.Text(), "bytes %d", &bytes)
			if err1 != nil && err2 != nil {
				t.Fatalf("writer says %q", lines.Text())
			}
			if bytes > 500 && records > last+50 {
				c.Process.Kill() // and read what it said until then
			}
		}
		c.Wait()

		j, err := s.Open(t.Context(), sampleID)
		must(t, err)
		last = j.Recovery().Last
		if last < records {
			t.Errorf("%d records were seen, %d are there", records, last)
		}
		got := 0
		for _, c := range openItems(t, j) {
			got += len(c.Text)
		}
		if got < bytes {
			t.Errorf("%d bytes were seen, %d are there", bytes, got)
		}
		last = j.Append(journal.Entry{Kind: "crashed", Closes: "1."})
		must(t, j.Close())
	}
}
