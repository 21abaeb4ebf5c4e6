package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// varying is what differs from one run to the next in a request.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`<current_date>[^<]*`), "<current_date>DATE"},
	{regexp.MustCompile(`<time_zone>[^<]*`), "<time_zone>ZONE"},
	{regexp.MustCompile(`<operating_system>[^<]*`), "<operating_system>SYSTEM"},
	{regexp.MustCompile(`"prompt_cache_key": "[^"]*"`), `"prompt_cache_key": "KEY"`},
}

// The first request of a conversation, whole, on each wire and for a model of each
// family: to be read when it changes.
func TestFirstRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		wire  wirecheck.Wire
		flags []string
		most  int // bytes
	}{
		{"gpt-5.2-codex", wirecheck.Responses, []string{"-s", "workspace-write", "-a", "on-request"}, 18_000},
		{"claude-sonnet-4-5", wirecheck.Anthropic, []string{"-s", "read-only"}, 18_000},
		{"qwen3-coder", wirecheck.Chat, []string{"-s", "danger-full-access"}, 18_000},
	} {
		t.Run(tt.model, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.wire, "", modeltest.Respond(modeltest.Say("hello")))
			if err := os.WriteFile(filepath.Join(s.work, "CLAUDE.md"), []byte("Use tabs.\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			s.must(append(append([]string{"exec", "-m", tt.model}, tt.flags...), "fix the bug")...)
			body := s.srv.Wait(1).Raw
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, body, "", "  "); err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(pretty.String(), s.work, "/work")
			for _, v := range varying {
				text = v.what.ReplaceAllString(text, v.with)
			}
			var same bytes.Buffer // on every machine
			if err := json.Compact(&same, []byte(text)); err != nil {
				t.Fatal(err)
			}
			text = strings.ReplaceAll(text, `\n`, "\n        ") // to be read
			if len(body) > tt.most {
				t.Errorf("the request has %d bytes", len(body))
			}
			golden(t, filepath.Join("testdata", "requests", tt.model+".txt"), fmt.Sprintf("POST, %d00 bytes\n\n%s", (same.Len()+50)/100, text))
		})
	}
}

// golden compares a text with a file, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the paths are those of Linux")
	}
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, d)
	}
}

// The user's instructions replace ours or are added to them; a change between turns is a new message, and everything before it
// stays as it was, so that caches hold.
func TestInstructionsAndChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "")
	s.srv.Otherwise(modeltest.Respond(modeltest.Say("hello")))
	s.file("mine.md", "You are mine.\n")
	flags := []string{"-m", "gpt-5.2-codex", "-c", "model_instructions_file=" + filepath.Join(s.work, "mine.md"), "-c", "developer_instructions=Say yes."}
	s.must(append(append([]string{"exec"}, flags...), "-s", "read-only", "one")...)
	id := s.conversation()
	s.must(append(append([]string{"exec", "resume"}, flags...), "-s", "read-only", id, "two")...)
	s.must(append(append([]string{"exec", "resume"}, flags...), "-s", "danger-full-access", id, "three")...)
	var before []map[string]any
	for n, want := range []string{"one", "two", "<environment_context>\n  <sandbox_mode>danger-full-access"} {
		r := s.srv.Wait(n + 1)
		text := string(r.Raw)
		if !strings.Contains(text, `"instructions":"You are mine.`) || strings.Contains(text, "You are fermata") || !strings.Contains(text, "Say yes.") {
			t.Errorf("request %d has other instructions: %.300s", n+1, text)
		}
		now := r.List("input")
		if d := cmp.Diff(before, now[:len(before)]); before != nil && d != "" {
			t.Errorf("request %d begins otherwise than the one before (-before +now):\n%s", n+1, d)
		}
		if added := fmt.Sprint(now[len(before):]); !strings.Contains(added, want) {
			t.Errorf("request %d adds %s", n+1, added)
		}
		if n == 1 && strings.Contains(fmt.Sprint(now[len(before):]), "environment_context") {
			t.Error("the environment is repeated though nothing has changed")
		}
		before = now
	}
}
