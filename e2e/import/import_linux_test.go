// Package imports lets real agents make conversations, kills them at random instants, and imports what they leave.
package imports

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	gemini   = flag.String("gemini", "", "Gemini CLI, the `PROGRAM`")
)

// An agent is a program whose conversations are imported.
type agent struct {
	name string
	bin  string
	// prepare writes its configuration into a home.
	prepare func(t *testing.T, home, url string)
	args    []string
	env     func(url string) []string
	serve   func(t *testing.T) model
}

// A model is the service that an agent uses.
type model interface {
	URL() string
	// Bodies are those of the requests so far.
	Bodies() [][]byte
}

// script is a model service of modeltest.
type script struct{ *modeltest.Server }

func (s script) Bodies() (all [][]byte) {
	for _, r := range s.Requests() {
		all = append(all, r.Raw)
	}
	return all
}

func serveScript(t *testing.T) model {
	s := modeltest.New(t)
	s.ExpectRefusals() // agents send what they send
	s.Otherwise(modeltest.From(play))
	return script{s}
}

func agents() []agent {
	return []agent{
		{"codex", *codex, prepareCodex, []string{"exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"}, func(string) []string { return []string{"MOCK_API_KEY=x"} }, serveScript},
		{"claude", *claude, func(*testing.T, string, string) {}, []string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"}, func(url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(url, "/v1"), "ANTHROPIC_API_KEY=x", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1",
				"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			}
		}, serveScript},
		{"opencode", *opencode, prepareOpenCode, []string{"run", "--format", "json", "--auto"}, func(string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
		}, serveScript},
		{"gemini", *gemini, prepareGemini, []string{"-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json", "-p"}, func(url string) []string {
			return []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + url}
		}, serveGemini},
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
// the next request, and every message and every output that the model was sent and the agent has recorded is there.
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
	s := a.serve(t)
	home, work := t.TempDir(), t.TempDir()
	a.prepare(t, home, s.URL())
	r := runner{t, a, s, home, work}
	r.run("task number 0 of all", 0, time.Minute) // the first start does more than others
	before, turn := r.run("task number 00 of all", 0, time.Minute)
	random := rand.New(rand.NewPCG(*seed, 0))
	for i := range *kills {
		prompt := fmt.Sprintf("task number %d of all", i+1)
		if i%5 == 0 { // at any instant, also before the turn
			r.run(prompt, time.Duration(random.Int64N(int64(before+turn))), 0)
			continue
		}
		r.run(prompt, time.Minute, time.Duration(random.Int64N(int64(turn))))
	}
	judge(t, a, fermata, home, work, recorded(t, home, s))
}

// A runner starts an agent in one home.
type runner struct {
	t          *testing.T
	agent      agent
	model      model
	home, work string
}

// run lets the agent do one task. It is killed after atStart, or, if its model has been asked by then, after inTurn from that
// moment on. It returns how long it took until the model was asked, and from there until the end. An atStart of zero is as long as it takes.
func (r runner) run(prompt string, atStart, inTurn time.Duration) (before, turn time.Duration) {
	cmd := exec.Command(r.agent.bin, append(slices.Clone(r.agent.args), prompt)...)
	cmd.Dir = r.work
	cmd.Env = append([]string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/bash", "USER=root"}, r.agent.env(r.model.URL())...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start, asked := time.Now(), len(r.model.Bodies())
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed, as a rule
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	if atStart == 0 {
		atStart = 5 * time.Minute
	}
	for limit := atStart; ; {
		select {
		case <-ended:
			return before, time.Since(start) - before
		case <-look.C:
		}
		if before == 0 && inTurn > 0 && len(r.model.Bodies()) > asked {
			before = time.Since(start)
			limit = before + inTurn
		}
		if time.Since(start) > limit {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

// traces are what a turn leaves: the user's message, and the outputs of its commands.
var traces = regexp.MustCompile(`task number \d+ of all|output-\d-\d+`)

// recorded are the messages and outputs that the model was sent and that the agent has written to its files.
func recorded(t *testing.T, home string, s model) []string {
	t.Helper()
	written := map[string]bool{}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, word := range traces.FindAll(data, -1) {
			written[string(word)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for _, body := range s.Bodies() {
		for _, word := range traces.FindAll(body, -1) {
			sent[string(word)] = true
		}
	}
	all := len(sent)
	maps.DeleteFunc(sent, func(word string, _ bool) bool { return !written[word] })
	t.Logf("%d messages and outputs were sent to the model, %d of them are in the agent's files", all, len(sent))
	return slices.Sorted(maps.Keys(sent))
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
	missing := slices.DeleteFunc(slices.Clone(seen), func(word string) bool { return strings.Contains(all.String(), word) })
	if len(missing) > 0 {
		t.Errorf("messages and outputs that the agent has recorded and that were not imported: %q", missing)
	}
	t.Logf("%s: %d conversations, %d messages and outputs, all resumed", a.name, len(ids), len(seen))
	if len(ids) == 0 {
		t.Error("nothing was imported")
	}
}
