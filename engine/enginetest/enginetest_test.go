package enginetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/file"
	"github.com/fermata-agent/fermata/store/memory"
)

// wait is a tool that can be interrupted.
var wait = engine.ToolFor("wait", "Waits.", func(ctx context.Context, in struct {
	Milliseconds int `json:"milliseconds"`
},
) (string, error) {
	select {
	case <-time.After(time.Duration(in.Milliseconds) * time.Millisecond):
		return "waited", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
})

func TestDemoModel(t *testing.T) { enginetest.TestModel(t, demo.New(), "talk 1", "talk 2000") }
func TestTypedTool(t *testing.T) {
	enginetest.TestTool(t, wait, `{"milliseconds":0}`, `{"milliseconds":1}`)
}

func TestMemoryStore(t *testing.T) {
	store := memory.New()
	enginetest.TestStore(t, func(testing.TB) engine.Store { return store })
}

func TestFileStore(t *testing.T) {
	dir := t.TempDir()
	enginetest.TestStore(t, func(testing.TB) engine.Store { return file.New(dir) })
}

// A test of a model that a program brings.
func ExampleTestModel() {
	_ = func(t *testing.T) { // func TestMyModel(t *testing.T)
		enginetest.TestModel(t, demo.New(), "talk 1", "talk 2000")
	}
}

// A test of a tool that a program brings, with two calls that have to succeed.
func ExampleTestTool() {
	_ = func(t *testing.T) { // func TestMyTool(t *testing.T)
		enginetest.TestTool(t, wait, `{"milliseconds":0}`, `{"milliseconds":1}`)
	}
}

// A test that a store works where the program runs.
func ExampleTestStore() {
	_ = func(t *testing.T) { // func TestMyStore(t *testing.T)
		dir := t.TempDir()
		enginetest.TestStore(t, func(testing.TB) engine.Store { return file.New(dir) })
	}
}
