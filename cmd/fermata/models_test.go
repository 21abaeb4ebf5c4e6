package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

var wires = []wirecheck.Wire{wirecheck.Responses, wirecheck.Chat, wirecheck.Anthropic}

// onEveryWire runs a test for each of them.
func onEveryWire(t *testing.T, f func(t *testing.T, w wirecheck.Wire)) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

// onWires is onEveryWire for one variant of many: a plain run has each variant on one wire, and each wire for some variant.
func onWires(t *testing.T, variant int, f func(t *testing.T, w wirecheck.Wire)) {
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		if !longtest.On() && w != wires[variant%len(wires)] {
			t.Skip(longtest.ErrOff)
		}
		f(t, w)
	})
}

// A site is a place whose configuration names a scripted model service.
type site struct {
	*place
	srv  *modeltest.Server
	home string // FERMATA_HOME
}

const mockKey = "sk-very-secret-0123456789"

// newSite makes a place with a provider that has no retries and wants a key.
// more is added to the provider's table.
func newSite(t *testing.T, w wirecheck.Wire, more string, replies ...modeltest.Reply) *site {
	t.Helper()
	pl := newPlace(t)
	s := &site{place: pl, srv: modeltest.New(t, replies...), home: filepath.Join(pl.dir, "home", "fermata")}
	if !strings.Contains(more, "_max_retries") {
		more += "\nrequest_max_retries = 0\nstream_max_retries = 0\n"
	}
	s.configure(fmt.Sprintf(`
model = "mock-model"
model_provider = "mock_provider"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.mock_provider]
name = "Mock provider for test"
base_url = %q
wire_api = %q
env_key = "MOCK_KEY"
%s`, s.srv.URL(), w, more))
	pl.env = append(pl.env, "MOCK_KEY="+mockKey)
	return s
}

func (s *site) configure(text string) {
	s.t.Helper()
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, "config.toml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// prepend puts settings before what is in the configuration file, whose last lines are in a table.
func (pl *place) prepend(settings string) {
	pl.t.Helper()
	name := filepath.Join(pl.dir, "home", "fermata", "config.toml")
	text, err := os.ReadFile(name)
	if err != nil {
		pl.t.Fatal(err)
	}
	if err := os.WriteFile(name, append([]byte(settings), text...), 0o600); err != nil {
		pl.t.Fatal(err)
	}
}

// secretKept checks that the key is neither in the given texts nor in any file
// of the home.
func (s *site) secretKept(printed ...string) {
	s.t.Helper()
	for _, text := range printed {
		if strings.Contains(text, mockKey) {
			s.t.Errorf("the key was printed:\n%s", text)
		}
	}
	binary, err := os.Stat(s.bin) // which has other names there
	if err != nil {
		s.t.Fatal(err)
	}
	err = filepath.WalkDir(s.home, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := os.Stat(name); err == nil && os.SameFile(info, binary) {
			return nil
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), mockKey) {
			s.t.Errorf("the key is in %s", name)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// shell is a call of the shell tool that runs a script.
func shell(id, script string) modeltest.Step {
	return modeltest.Call(id, "shell", fmt.Sprintf(`{"command":["bash","-lc",%q]}`, script))
}

// tail tells the last n items of a request in short.
func tail(r *modeltest.Request, n int) []string {
	var out []string
	for _, it := range r.Items {
		for _, text := range blocks(it.Text) {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", it.Kind, it.ID, text)))
		}
	}
	return out[max(0, len(out)-n):]
}

// blocks takes a message apart that holds context in tags beside the user's own words: on the chat wire
// what comes in a row from the user is one message.
func blocks(text string) []string {
	var list []string
	for _, tag := range []string{"environment_context", "user_instructions", "turn_aborted"} {
		before, rest, ok := strings.Cut(text, "<"+tag+">")
		inside, after, closed := strings.Cut(rest, "</"+tag+">")
		if !ok || !closed {
			continue
		}
		if before = strings.TrimSpace(before); before != "" {
			list = append(list, blocks(before)...)
		}
		list = append(list, "<"+tag+">"+inside+"</"+tag+">")
		if after = strings.TrimSpace(after); after != "" {
			list = append(list, blocks(after)...)
		}
		return list
	}
	return []string{text}
}

// outputs counts the outputs that a request has for a call.
func outputs(r *modeltest.Request, id string) (n int) {
	for _, it := range r.Items {
		if it.Kind == wirecheck.Output && it.ID == id {
			n++
		}
	}
	return n
}

// matches checks texts against patterns, one each.
func matches(t *testing.T, what string, got []string, patterns ...string) {
	t.Helper()
	ok := len(got) == len(patterns)
	for i := range min(len(got), len(patterns)) {
		ok = ok && regexp.MustCompile(`(?s)^`+patterns[i]+`$`).MatchString(got[i])
	}
	if !ok {
		t.Errorf("%s\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(patterns, "\n  "))
	}
}

func TestStopBetweenCallAndOutput(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "",
			modeltest.Respond(modeltest.Say("I try."), shell("call_s", "echo begun; exec sleep 600")),
			modeltest.Respond(modeltest.Say("I see.")))
		pr := s.start("exec", "work on it")
		eventually(t, "the command runs", func() bool { return pr.err.has("  begun\n") })
		pr.signal(syscall.SIGTERM)
		if code := pr.code(); code != 143 {
			t.Errorf("exit code %d", code)
		}

		if out := s.must("exec", "resume", "--last", "and now?"); out != "I see.\n" {
			t.Errorf("answer %q", out)
		}
		second := s.srv.Wait(2)
		matches(t, "end of the request", tail(second, 6),
			`user  work on it`, `assistant  I try\.`, `call call_s .*sleep 600.*`,
			`output call_s aborted.*begun.*`, `user  <turn_aborted>.*on purpose.*</turn_aborted>`, `user  and now\?`)
		if n := outputs(second, "call_s"); n != 1 {
			t.Errorf("%d outputs for the call", n)
		}
		s.fsck()
	})
}

// refusals are the two ways in which a history can be refused because of a
// call: one that we know, and one that only the service remembers.
var refusals = []struct {
	name  string
	call  string
	serve func(w wirecheck.Wire, srv *modeltest.Server)
}{
	{"known call", "call_known", func(w wirecheck.Wire, srv *modeltest.Server) {
		fault := wirecheck.Fault{Kind: wirecheck.Missing, Index: 1, Item: wirecheck.Item{Kind: wirecheck.Call, Call: p.CallFunction, ID: "call_known"}}
		srv.Add(
			modeltest.Respond(shell("call_known", "echo done")),
			modeltest.Status(http.StatusBadRequest, string(fault.Body(w))),
			modeltest.Respond(modeltest.Say("All well.")))
	}},
	{"call we never saw", "call_never", func(_ wirecheck.Wire, srv *modeltest.Server) {
		srv.ExpectRefusals()
		srv.Remember("call_never")
		srv.Add(modeltest.Respond(modeltest.Say("All well.")))
	}},
}

func TestRefusedHistoryIsRepaired(t *testing.T) {
	t.Parallel()
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
				if w == wirecheck.Anthropic && r.call == "call_never" {
					t.Skip("this service keeps nothing between requests")
				}
				for _, json := range []bool{false, true} {
					if !longtest.On() && json != (w == wirecheck.Responses) {
						continue
					}
					s := newSite(t, w, "") // no retries at all
					r.serve(w, s.srv)
					args := []string{"exec", "work on it"}
					if json {
						args = append(args, "--json")
					}
					out, errs, code := s.run(args...)
					if code != 0 {
						t.Fatalf("exit code %d\n%s%s", code, out, errs)
					}
					notice := "the model refused the history because of call " + r.call + "; repaired, trying again"
					if json {
						contains(t, "stdout", out, `"type":"error","message":"`+notice+`"`, `"text":"All well."`, `"type":"turn.completed"`)
					} else {
						contains(t, "stderr", errs, "· "+notice+"\n")
					}
					if strings.Contains(out+errs, "retry 1") || strings.Contains(out, "Reconnecting") {
						t.Errorf("a retry was used\n%s%s", out, errs)
					}
					all := s.srv.Requests()
					if n := outputs(all[len(all)-1], r.call); n != 1 {
						t.Errorf("the last request has %d outputs for %s: %q", n, r.call, tail(all[len(all)-1], 4))
					}
					s.fsck()
				}
			})
		})
	}
}

// A refusal that cannot be cured is not tried for ever.
func TestRefusedHistoryIsRepairedOnce(t *testing.T) {
	t.Parallel()
	const body = `{"error":{"message":"No tool output found for function call call_X.","type":"invalid_request_error","param":"input","code":null}}`
	s := newSite(t, wirecheck.Responses, "")
	s.srv.ExpectRefusals() // nor does it like the repair
	s.srv.Otherwise(modeltest.Status(http.StatusBadRequest, body))
	_, errs, code := s.run("exec", "work on it")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, "stderr", errs, "fermata: failed after ", "call_X", "to resume: fermata exec resume ")
	if n := len(s.srv.Requests()); n != 2 {
		t.Errorf("%d requests, want the first and one more", n)
	}
}

// failures are what services say, and what we say about it.
var failures = []struct {
	name   string
	status int
	body   string
	want   []string
}{
	{"bad key", 401, `{"error":{"message":"Incorrect API key provided: ` + mockKey + `","type":"invalid_request_error","code":"invalid_api_key"}}`, []string{"Incorrect API key provided", "check the API key"}},
	{"unknown model", 404, `{"error":{"message":"The model mock-model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, []string{"mock-model does not exist", "-m"}},
	{"no credit", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`, []string{"exceeded your current quota", "billing"}},
	{"bad request", 400, `{"error":{"message":"nonsense: tools","type":"invalid_request_error"}}`, []string{"nonsense: tools"}},
	{"wrong address", 404, `404 page not found`, []string{"base_url"}},
}

func TestFailureComesWithAdvice(t *testing.T) {
	t.Parallel()
	for i, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			onWires(t, i, func(t *testing.T, w wirecheck.Wire) {
				s := newSite(t, w, "request_max_retries = 3\nstream_max_retries = 3\n", modeltest.Status(f.status, f.body), modeltest.Status(f.status, f.body))
				out, errs, code := s.run("exec", "work on it")
				if code != 1 || out != "" {
					t.Errorf("exit code %d, stdout %q", code, out)
				}
				contains(t, "stderr", errs, append(f.want, "fermata: failed after ", "to resume: fermata exec resume ")...)
				lines, _, code := s.run("exec", "--json", "work on it")
				if code != 1 {
					t.Errorf("--json: exit code %d", code)
				}
				contains(t, "--json", lines, append(f.want, `{"type":"turn.failed","error":{"message":`)...)
				if n := len(s.srv.Requests()); n != 2 {
					t.Errorf("%d requests in two runs: it was tried again", n)
				}
				s.secretKept(out, errs, lines, s.must("config", "show"))
			})
		})
	}
}

// What does not fit is summarised once. If that is refused as well the turn ends.
func TestContextLength(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "")
		s.srv.Otherwise(modeltest.Status(400, `{"error":{"message":"prompt is too long: 300000 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`))
		_, errs, code := s.run("exec", "work on it")
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		contains(t, "stderr", errs, "prompt is too long", "compact", "larger context window")
		if n := len(s.srv.Requests()); n > 3 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestRetriesAreVisible(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		again := modeltest.Status(500, `{"error":{"message":"out of order","type":"server_error"}}`, "Retry-After-Ms", "1")
		s := newSite(t, w, "request_max_retries = 1\nstream_max_retries = 1\n",
			again, modeltest.Respond(modeltest.SayCut("half"), modeltest.Drop()), modeltest.Respond(modeltest.Say("whole")),
			again, modeltest.Respond(modeltest.Say("whole")),
			again, again, again)
		out, errs, code := s.run("exec", "work on it")
		if code != 0 || out != "whole\n" {
			t.Errorf("exit code %d, stdout %q", code, out)
		}
		contains(t, "stderr", errs, "· retry 1 of 2 in ", "· retry 2 of 2 in ", "out of order")
		if n := strings.Count(errs, "· retry "); n != 2 {
			t.Errorf("%d retries are visible\n%s", n, errs)
		}

		out, _, code = s.run("exec", "--json", "work on it")
		if code != 0 {
			t.Errorf("--json: exit code %d", code)
		}
		contains(t, "--json", out, `{"type":"error","message":"Reconnecting... 1/2 (`, "out of order", `"type":"turn.completed"`)

		out, errs, code = s.run("exec", "--json", "work on it")
		if code != 1 {
			t.Errorf("budget used up: exit code %d\n%s", code, errs)
		}
		contains(t, "budget used up", out, "Reconnecting... 2/2", `{"type":"turn.failed","error":{"message":`, "out of order")
		s.secretKept(out, errs)
	})
}

func TestStopInBackOff(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "request_max_retries = 3\n",
			modeltest.Status(503, `{"error":{"message":"busy","type":"server_error"}}`, "Retry-After", "50"),
			modeltest.Respond(modeltest.Say("here I am")))
		pr := s.start("exec", "--json", "work on it")
		eventually(t, "a retry is announced", func() bool { return pr.out.has("Reconnecting... 1/8 (") })
		pr.signal(syscall.SIGINT)
		if code := pr.code(); code != 130 {
			t.Errorf("exit code %d", code)
		}
		contains(t, "--json", pr.out.String(), `{"type":"turn.failed","error":{"message":"turn interrupted"}}`)
		if out := s.must("exec", "resume", "--last", "and now?"); out != "here I am\n" {
			t.Errorf("answer %q", out)
		}
		matches(t, "end of the request", tail(s.srv.Wait(2), 3),
			`user  work on it`, `user  <turn_aborted>.*</turn_aborted>`, `user  and now\?`)
	})
}

// A stop closes the connection, whatever the service is about to do.
func TestStopClosesTheConnection(t *testing.T) {
	t.Parallel()
	for i, stall := range []struct {
		name  string
		reply modeltest.Reply
	}{
		{"before the headers", modeltest.Respond(modeltest.Stall())},
		{"in a message", modeltest.Respond(modeltest.SayCut("half an ans"), modeltest.Stall())},
		{"in arguments", modeltest.Respond(modeltest.CallCut("call_c", "shell", `{"command":["touch","never`), modeltest.Stall())},
	} {
		t.Run(stall.name, func(t *testing.T) {
			t.Parallel()
			onWires(t, i, func(t *testing.T, w wirecheck.Wire) {
				s := newSite(t, w, "", stall.reply, modeltest.Respond(modeltest.Say("going on")))
				pr := s.start("exec", "work on it")
				req := s.srv.Wait(1)
				pr.signal(syscall.SIGINT)
				if code := pr.code(); code != 130 {
					t.Errorf("exit code %d", code)
				}
				modeltest.Wait(t, "the connection is closed", req.Gone())
				s.must("exec", "resume", "--last", "and now?")
				s.fsck()
			})
		})
	}
}

func TestMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "")
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "MOCK_KEY=") })
	out, errs, code := s.run("exec", "work on it")
	if code != 1 || out != "" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	contains(t, "stderr", errs, "MOCK_KEY", "config.toml")
	if n := len(s.conversations()); n != 0 {
		t.Errorf("%d conversations were begun", n)
	}
}

// The key in the environment does not reach what commands print either, and
// nothing that was sent or received is kept where the key could be in it.
func TestKeyStaysSecret(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "", modeltest.Respond(shell("call_e", "env | grep MOCK_; echo end")), modeltest.Respond(modeltest.Say("done")))
		out, errs, code := s.run("exec", "show me the environment")
		if code != 0 {
			t.Errorf("exit code %d\n%s", code, errs)
		}
		var sent string
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			sent += s.srv.Wait(1).Header.Get(name)
		}
		if !strings.Contains(sent, mockKey) {
			t.Errorf("the service did not get the key: %q", sent)
		}
		if strings.Contains(string(s.srv.Wait(2).Raw), mockKey) {
			t.Error("a command told the model the key")
		}
		s.secretKept(out, errs, s.must("show", "--json", s.conversation()), s.must("config", "show"))
	})
}

func TestConfigShow(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "http_headers = { X-Token = \"token-that-is-secret\" }\n")
	out := s.must("config", "show", "-c", "model_reasoning_effort=high", "-m", "other")
	contains(t, "config show", out,
		`model = "other"`, `model_reasoning_effort = "high"`, `sandbox_mode = "danger-full-access"`, `config.toml:`, s.srv.URL())
	for line := range strings.Lines(out) {
		for key, from := range map[string]string{"model = ": "--model", "model_reasoning_effort = ": "-c", "sandbox_mode = ": "config.toml:5"} {
			if strings.HasPrefix(line, key) && !strings.Contains(line, from) {
				t.Errorf("%sdoes not say that it is from %s", line, from)
			}
		}
	}
	s.secretKept(out)
	if strings.Contains(out, "token-that-is-secret") {
		t.Errorf("a header was printed:\n%s", out)
	}

	s.configure("modle = \"typo\"\napproval_policy = \"sometimes\"\n")
	out, errs, code := s.run("config", "show")
	if code != 1 || out != "" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	contains(t, "stderr", errs, "config.toml:1", "modle", "did you mean model?", "config.toml:2", "approval_policy", "sometimes", "on-request")
}
