package main

import (
	"os"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// A checkpoint is whole when the program ends, also if the turn has just ended.
func TestCheckpointIsWrittenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	for range longtest.Default(10, 3) { // the end comes at another instant each time
		pl.must("exec", "--demo", "run: head -c 200000 /dev/zero | tr '\\0' x")
		if _, err := os.Stat(pl.conversations()[0].Path + ".ckpt"); err != nil {
			t.Fatal(err)
		}
	}
}
