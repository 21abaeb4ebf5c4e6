package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// pixel is the smallest PNG there is.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (pl *place) image(name string) {
	pl.t.Helper()
	b, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		pl.t.Fatal(err)
	}
	pl.file(name, string(b))
}

// runWith runs the binary with something on its stdin.
func (pl *place) runWith(stdin string, args ...string) (out, errs string, code int) {
	pl.t.Helper()
	var stdout, stderr strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := pl.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = cmd.Run()
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func TestStdinIsPutBehindThePrompt(t *testing.T) {
	t.Parallel()
	ok := modeltest.Respond(modeltest.Say("ok"))
	s := newSite(t, wirecheck.Responses, "", ok, ok, ok, ok)
	for i, c := range []struct {
		stdin, want string
		args        []string
	}{
		{"a log\nof two lines\n", "user  explain\n\n<stdin>\na log\nof two lines\n</stdin>", []string{"exec", "explain"}},
		{"\n", "user  explain", []string{"exec", "explain"}},
		{"all of it", "user  all of it", []string{"exec", "-"}},
		{"more", "user  and this?\n\n<stdin>\nmore\n</stdin>", []string{"exec", "resume", "--last", "and this?"}},
	} {
		if _, errs, code := s.runWith(c.stdin, c.args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", c.args, code, errs)
		}
		if got := tail(s.srv.Wait(i+1), 1); got[0] != c.want {
			t.Errorf("%q: the model was told\n%q, want\n%q", c.args, got[0], c.want)
		}
	}
	if _, errs, code := s.runWith("\xc3\x28", "exec", "explain"); code != 1 || !strings.Contains(errs, "the prompt is not text") {
		t.Errorf("no text: exit code %d\n%s", code, errs)
	}
}

// All the flags that a program may put on a command line, in its order.
func TestCommandLineOfTheSDK(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "", modeltest.Respond(modeltest.Say(`{"n":1}`)), modeltest.Respond(modeltest.Say("plain")))
		s.image("one.png")
		s.image("two, and three.png")
		s.file("schema.json", `{"type": "object", "properties": {"n": {"type": "integer"}}}`)
		flags := []string{
			"exec", "--experimental-json", "--config", `x.a b=["q"]`, "--config", `unknown.key={}`, "--model", "their-model",
			"--thread-source", "user", "--sandbox", "read-only", "--cd", s.work, "--add-dir", s.dir, "--skip-git-repo-check",
			"--output-schema", "schema.json", "--cyber-access-program", "p", "--config", `model_reasoning_effort="low"`,
			"--config", "sandbox_workspace_write.network_access=true", "--config", `web_search="disabled"`, "--config", `approval_policy="never"`,
		}
		out, errs, code := s.runWith("first", append(flags, "--image", "one.png", "--image", "two, and three.png")...)
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		first := s.srv.Wait(1)
		if n := strings.Count(string(first.Raw), pixel); n != 2 {
			t.Errorf("the model was shown %d images", n)
		}
		contains(t, "request", string(first.Raw), `{"type":"object","properties":{"n":{"type":"integer"}}}`, "their-model", "first")

		// The second turn has no schema: that was for the first only.
		id := threadOf(t, out)
		plain := []string{"exec", "--experimental-json", "--sandbox", "read-only", "resume", id, "--image", "one.png"}
		out, errs, code = s.runWith("second", plain...)
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		if again := threadOf(t, out); again != id {
			t.Errorf("thread %s became %s", id, again)
		}
		second := string(s.srv.Wait(2).Raw)
		if strings.Contains(second, `"properties":{"n"`) {
			t.Error("the schema of the first turn was sent again")
		}
		if n := strings.Count(second, pixel); n != 3 {
			t.Errorf("the model was shown %d images", n)
		}
		s.fsck()
	})
}

// threadOf is the id in the first line.
func threadOf(t *testing.T, lines string) string {
	t.Helper()
	var first struct {
		Type   string `json:"type"`
		Thread string `json:"thread_id"`
	}
	line, _, _ := strings.Cut(lines, "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.Type != "thread.started" {
		t.Fatalf("first line %q: %v", line, err)
	}
	return first.Thread
}

func TestInputThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.file("text.png", "I am no image")
	pl.file("list.json", "[1]")
	pl.file("broken.json", "{")
	pl.image("good.png")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "none.png: no such file", []string{"-i", "none.png"}},
		{1, "none.png", []string{"--image", "good.png,none.png"}},
		{1, "image text.png: neither PNG", []string{"-i", "text.png"}},
		{1, "output schema: open none.json", []string{"--output-schema", "none.json"}},
		{1, "output schema list.json: not a JSON object", []string{"--output-schema", "list.json"}},
		{1, "output schema broken.json: not a JSON object", []string{"--output-schema", "broken.json"}},
		{2, `--color must be always, never or auto, not "pink"`, []string{"--color", "pink"}},
	} {
		out, errs, code := pl.run(append([]string{"exec", "--demo", "hello"}, c.args...)...)
		if code != c.code || out != "" {
			t.Errorf("%q: exit code %d, stdout %q", c.args, code, out)
		}
		contains(t, "stderr", errs, "fermata: ", c.want)
		lines, _, _ := pl.run(append([]string{"exec", "--demo", "--json", "hello"}, c.args...)...)
		if !strings.HasPrefix(lines, `{"type":"error","message":"`) || strings.Count(lines, "\n") != 1 {
			t.Errorf("%q --json: %q", c.args, lines)
		}
	}
	if n := len(pl.conversations()); n != 0 {
		t.Errorf("%d conversations were begun", n)
	}
}

func TestAnswerToAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "",
		modeltest.Respond(modeltest.Say("The answer.")), modeltest.Status(400, `{"error":{"message":"no"}}`))
	file := filepath.Join(s.work, "answer")
	if out := s.must("exec", "--color", "never", "-o", file, "hi"); out != "The answer.\n" {
		t.Errorf("stdout %q", out)
	}
	if b, err := os.ReadFile(file); string(b) != "The answer." {
		t.Errorf("file %q, %v", b, err)
	}
	if _, _, code := s.run("exec", "--output-last-message", file, "hi"); code != 1 {
		t.Errorf("failed turn: exit code %d", code)
	}
	if b, _ := os.ReadFile(file); string(b) != "The answer." {
		t.Errorf("a failed turn wrote %q", b)
	}
	_, errs, code := s.run("exec", "-o", filepath.Join(s.work, "none", "answer"), "hi")
	if code != 1 {
		t.Errorf("no such directory: exit code %d", code)
	}
	contains(t, "stderr", errs, "answer: there is no directory ") // no model was asked
}

func TestFork(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "", modeltest.Respond(modeltest.Say("one")), modeltest.Respond(modeltest.Say("two")), modeltest.Respond(modeltest.Say("three")))
	s.must("exec", "first")
	id := s.conversation()
	copied := strings.TrimSpace(s.must("exec", "fork", id))
	if copied == id || len(copied) != len(id) {
		t.Fatalf("copy of %s is %q", id, copied)
	}
	if again := threadOf(t, s.must("exec", "fork", "--json", id)); again == id || again == copied {
		t.Errorf("second copy of %s is %s", id, again)
	}
	if n := len(s.srv.Requests()); n != 1 {
		t.Errorf("%d requests: a fork without a prompt runs nothing", n)
	}
	if out := s.must("exec", "resume", copied, "second"); out != "two\n" {
		t.Errorf("answer %q", out)
	}
	if out := s.must("exec", "fork", id, "other"); out != "three\n" {
		t.Errorf("answer %q", out)
	}
	matches(t, "end of the request", tail(s.srv.Wait(3), 3), `user  first`, `assistant  one`, `user  other`)
	_, errs, code := s.run("exec", "fork", "0000")
	if code != 1 {
		t.Errorf("unknown: exit code %d", code)
	}
	contains(t, "stderr", errs, `"0000": no such conversation`)
	s.fsck()
}
