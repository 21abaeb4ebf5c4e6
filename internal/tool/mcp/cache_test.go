package mcp

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
)

// TestAKnownListNeedsNoStart opens a server twice: the second time its tools are known, and
// it is started with the first call.
func TestAKnownListNeedsNoStart(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	defs := func() map[string]config.MCPServer {
		def := self(t, "plain")
		def.DisabledTools = []string{"delete"}
		return map[string]config.MCPServer{"s": def}
	}
	first := openIn(t, dir, cache, defs())
	first.start(t)
	names := first.names()
	first.Close()

	second := openIn(t, dir, cache, defs())
	if got := second.names(); got != names || strings.Contains(got, "delete") {
		t.Errorf("tools %s\nwant  %s", got, names)
	}
	if second.Await("/w") != nil {
		t.Error("a server with a known list is waited for")
	}
	if second.list[0].state.Load().started {
		t.Error("it was started before it was called")
	}
	if res := second.call(t.Context(), t, "s__echo", `{"text":"late"}`); res.Output.Output != "late" {
		t.Errorf("%+v", res.Output)
	}
	if n := strings.Count(second.noted(), "started"); n != 2 {
		t.Errorf("started %d times, want 2", n)
	}
}

func TestAnotherDefinitionHasAnotherList(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	first := openIn(t, dir, cache, map[string]config.MCPServer{"s": self(t, "plain")})
	first.start(t)
	first.Close()
	for name, change := range map[string]func(*config.MCPServer){
		"arguments":   func(d *config.MCPServer) { d.Args = []string{"-x"} },
		"environment": func(d *config.MCPServer) { d.Env["X"] = config.NewSecret("1") },
		"directory":   func(d *config.MCPServer) { d.Cwd = "/" },
		"variables":   func(d *config.MCPServer) { d.EnvVars = []string{"X"} },
		"an address":  func(d *config.MCPServer) { d.Command, d.URL = "", "http://localhost/" },
	} {
		def := self(t, "plain")
		change(&def)
		if r := openIn(t, dir, cache, map[string]config.MCPServer{"s": def}); r.names() != "" {
			t.Errorf("%s: the list of another definition was used", name)
		}
	}
	if r := openIn(t, dir, cache, map[string]config.MCPServer{"other": self(t, "plain")}); !strings.Contains(r.names(), "other__echo") {
		t.Error("the name of a server matters")
	}
}

// TestARequiredServerIsStartedAllTheSame: a list says nothing about whether a server works.
func TestARequiredServerIsStartedAllTheSame(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	def := self(t, "plain")
	first := openIn(t, dir, cache, map[string]config.MCPServer{"s": def})
	first.start(t)
	first.Close()
	def.Required = true
	second := openIn(t, dir, cache, map[string]config.MCPServer{"s": def})
	second.start(t)
	if second.Await("/w") != nil {
		t.Error("it is waited for again")
	}
}

func TestAnOldListIsRenewed(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	first := openIn(t, dir, cache, map[string]config.MCPServer{"s": self(t, "plain")})
	first.start(t)
	file := first.list[0].cacheFile()
	first.Close()
	for name, text := range map[string]string{"old": `{"tools":[{"name":"gone","parameters":{}}]}`, "damaged": "[{", "null": "null", "of an earlier version": "[]"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := time.Now().Add(-2 * cacheAge)
		if err := os.Chtimes(file, before, before); err != nil {
			t.Fatal(err)
		}
		r := openIn(t, dir, cache, map[string]config.MCPServer{"s": self(t, "plain")})
		if name == "old" {
			if r.names() != "s__gone" {
				t.Errorf("tools %s", r.names())
			}
			until(t, "the new list", func() bool { return r.Await("/w") == nil && strings.Contains(r.names(), "s__echo") })
		} else {
			r.start(t)
		}
		r.Close()
		if text, _ := os.ReadFile(file); !strings.Contains(string(text), "Repeats a text.") {
			t.Errorf("%s: the file has %s", name, text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}

// BenchmarkKnownLists is what configured servers whose lists are known cost until the
// first request of a turn can be made.
func BenchmarkKnownLists(b *testing.B) {
	for _, n := range []int{0, 5, 20} {
		b.Run(strconv.Itoa(n)+" servers", func(b *testing.B) {
			dir, cache := b.TempDir(), b.TempDir()
			defs := map[string]config.MCPServer{}
			for i := range n {
				defs["s"+strconv.Itoa(i)] = self(b, "plain")
			}
			if n > 0 {
				first := openIn(b, dir, cache, defs)
				if _, err := first.Await("/w")(b.Context()); err != nil {
					b.Fatal(err)
				}
				first.Close()
			}
			opt := Options{Dir: dir, Cache: cache, Getenv: os.Getenv, Version: "test"}
			for b.Loop() {
				all := Open(b.Context(), defs, opt)
				if wait := all.Await("/w"); wait != nil || len(all.Tools("/w", nil)) != 11*n {
					b.Fatalf("%d tools", len(all.Tools("/w", nil)))
				}
				all.cancel()
				all.wait.Wait()
			}
			if n > 0 {
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/server")
			}
		})
	}
}
