// Package imports lets real agents make conversations, kills them at random instants, and imports what they leave.
package imports

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

var (
	kills    = flag.Int("kills", 3, "how often each agent is killed")
	seed     = flag.Uint64("seed", 1, "of the instants")
	codex    = flag.String("codex", "../codex-tui/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "the `PROGRAM`")
	claude   = flag.String("claude", "", "Claude Code, the `PROGRAM`")
	opencode = flag.String("opencode", "", "the `PROGRAM`")
)

// An agent is a program whose conversations are imported.
type agent struct {
	name string
	bin  string
	// prepare writes its configuration into a home.
	prepare func(t *testing.T, home, url string)
	args    []string
	env     func(url string) []string
}

func agents() []agent {
	return []agent{
		{"codex", *codex, prepareCodex, []string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"}, func(string) []string { return []string{"MOCK_API_KEY=x"} }},
		{"claude", *claude, func(*testing.T, string, string) {}, []string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"}, func(url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(url, "/v1"), "ANTHROPIC_API_KEY=x", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1",
				"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			}
		}},
		{"opencode", *opencode, prepareOpenCode, []string{"run", "--format", "json", "--auto"}, func(string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
		}},
	}
}

func prepareCodex(t *testing.T, home, url string) {
	put(t, filepath.Join(home, ".codex", "config.toml"), fmt.Sprintf("model = \"m\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"MOCK_API_KEY\"\n", url))
}

func prepareOpenCode(t *testing.T, home, url string) {
	put(t, filepath.Join(home, ".config", "opencode", "opencode.json"), fmt.Sprintf(`{"autoupdate":false,"share":"disabled","model":"mock/m","small_model":"mock/m","enabled_providers":["mock"],"permission":{"*":"allow"},`+
		`"provider":{"mock":{"npm":"@ai-sdk/openai-compatible","name":"mock","options":{"baseURL":%q,"apiKey":"x"},"models":{"m":{"name":"m","tool_call":true,"limit":{"context":1000000,"output":32000}}}}}}`, url))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// play is the model: two commands, then a text that takes a while. A request without tools asks for a title.
func play(r *modeltest.Request) modeltest.Reply {
	name, argument := shellOf(r)
	if name == "" {
		return modeltest.Respond(modeltest.Say("a title"))
	}
	outputs := 0
	for _, it := range slices.Backward(r.Items) {
		if it.Kind == wirecheck.User {
			break
		}
		if it.Kind == wirecheck.Output {
			outputs++
		}
	}
	if outputs < 2 {
		command, _ := json.Marshal(map[string]string{argument: fmt.Sprintf("echo output-%d-$RANDOM; sleep 0.2", outputs)})
		return modeltest.Respond(modeltest.Say("Looking. "), modeltest.Call(fmt.Sprintf("call_%d_%d", r.Number, outputs), name, string(command)))
	}
	var steps []modeltest.Step
	for i := range 20 {
		steps = append(steps, modeltest.Sleep(20*time.Millisecond), modeltest.Say(fmt.Sprintf("word%d ", i)))
	}
	return modeltest.Respond(steps...)
}

// shellOf returns the tool of a request that runs commands, and the name of its argument.
func shellOf(r *modeltest.Request) (name, argument string) {
	for _, tool := range r.List("tools") {
		n, _ := tool["name"].(string)
		if f, ok := tool["function"].(map[string]any); ok {
			n, _ = f["name"].(string)
		}
		switch n {
		case "exec_command":
			return n, "cmd"
		case "Bash", "bash":
			return n, "command"
		}
	}
	return "", ""
}

// Conversations of agents that were killed at random instants are imported whole: fsck finds nothing, a strict service accepts
// the next request, and every output that the model has seen is there.
func TestKilledAgents(t *testing.T) {
	fermata := filepath.Join(t.TempDir(), "fermata")
	build := exec.Command("go", "build", "-o", fermata, "./cmd/fermata")
	build.Dir = "../.." // the product's own module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, a := range agents() {
		t.Run(a.name, func(t *testing.T) {
			bin, err := filepath.Abs(a.bin) // it is started in another directory
			if err == nil {
				_, err = os.Stat(bin)
			}
			if a.bin == "" || err != nil {
				t.Skipf("skipped: there is no %s here; name it with -%s", a.name, a.name)
			}
			a.bin = bin
			killed(t, a, fermata)
		})
	}
}

func killed(t *testing.T, a agent, fermata string) {
	s := modeltest.New(t)
	s.ExpectRefusals() // agents send what they send
	s.Otherwise(modeltest.From(play))
	home, work := t.TempDir(), t.TempDir()
	a.prepare(t, home, s.URL())
	run := func(prompt string, limit time.Duration) time.Duration {
		cmd := exec.Command(a.bin, append(slices.Clone(a.args), prompt)...)
		cmd.Dir = work
		cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/bash", "USER=root"}, a.env(s.URL())...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		start := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(limit, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer stop.Stop()
		_ = cmd.Wait() // killed, as a rule
		return time.Since(start)
	}
	whole := run("task zero of all", time.Minute)
	random := rand.New(rand.NewPCG(*seed, 0))
	for i := range *kills {
		run(fmt.Sprintf("task number %d of all", i+1), whole/10+time.Duration(random.Int64N(int64(whole))))
	}
	judge(t, a, fermata, home, work, seenOutputs(s))
}

// seenOutputs are the outputs of commands that the model was sent.
func seenOutputs(s *modeltest.Server) []string {
	seen := map[string]bool{}
	for _, r := range s.Requests() {
		for _, it := range r.Items {
			for _, word := range strings.Fields(it.Text) {
				if strings.HasPrefix(word, "output-") {
					seen[word] = true
				}
			}
		}
	}
	var list []string
	for word := range seen {
		list = append(list, word)
	}
	return list
}

// judge imports everything and looks at what came of it.
func judge(t *testing.T, a agent, fermata, home, work string, seen []string) {
	strict := modeltest.New(t) // fails the test if it refuses a history
	strict.Otherwise(modeltest.Respond(modeltest.Say("resumed")))
	ours := t.TempDir()
	put(t, filepath.Join(ours, "config.toml"), fmt.Sprintf("model = \"m\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"responses\"\n", strict.URL()))
	call := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(fermata, args...)
		cmd.Dir = work
		cmd.Env = []string{"HOME=" + home, "FERMATA_HOME=" + ours, "PATH=" + os.Getenv("PATH")}
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, errs.String())
		}
		return string(out)
	}
	ids := strings.Fields(call("import", a.name, "--all"))
	if again := call("import", a.name, "--all"); again != "" {
		t.Errorf("importing again: %q", again)
	}
	call("fsck")
	var all strings.Builder
	for _, id := range ids {
		all.WriteString(call("show", "--json", id))
		call("exec", "--skip-git-repo-check", "resume", id, "go on")
	}
	missing := slices.DeleteFunc(seen, func(word string) bool { return strings.Contains(all.String(), word) })
	if len(missing) > 0 {
		t.Errorf("outputs that the model has seen and that are not there: %q", missing)
	}
	t.Logf("%s: %d conversations, %d outputs, all resumed", a.name, len(ids), len(seen))
	if len(ids) == 0 {
		t.Error("nothing was imported")
	}
}
