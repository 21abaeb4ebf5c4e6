package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/stdin"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/file"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "fermata" {
		heedHangups()
	}
	testscript.Main(cleaned{m}, map[string]func(){"fermata": func() {
		stdin.Pace = shortPace
		if len(os.Args) == 2 && os.Args[1] == callServer {
			serveCalls()
			return
		}
		main()
	}})
}

// heedHangups undoes what nohup has told us: what we start would be deaf too.
func heedHangups() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// cleaned removes the built binary when all tests are over. These wait more than
// they compute, so that more of them run side by side than there are processors.
type cleaned struct{ *testing.M }

func (c cleaned) Run() int {
	if err := flag.Set("test.parallel", "6"); err != nil { // unless the command line says otherwise
		panic(err)
	}
	code := c.M.Run()
	if dir := binaryDir.Load(); dir != nil {
		os.RemoveAll(*dir)
	}
	return code
}

// TestScripts runs testdata/script/*.txtar against the real main. Besides the
// commands of testscript there are exits, call, conversation, readonly and tmpfs, the
// conditions mount and readonly, which say whether the latter two can be had, and long,
// which holds where long tests run.
func TestScripts(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector this takes minutes; the packages below are tested with it")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "call": cmdCall, "conversation": cmdConversation, "readonly": cmdReadonly, "tmpfs": cmdTmpfs,
		},
	})
}

// nowhere is where no model is served, whatever runs on the tester's machine.
const nowhere = "http://127.0.0.1:1/v1"

// setupScript gives a script a home of its own, so that neither the tester's
// conversations nor their shell profile matter.
func setupScript(env *testscript.Env) error {
	home := env.WorkDir + "/.home"
	env.Setenv("HOME", home)
	env.Setenv("FERMATA_HOME", home+"/fermata")
	env.Setenv("CODEX_HOME", "")
	env.Setenv("CODEX_OSS_BASE_URL", nowhere)
	env.Setenv("NO_OLLAMA", "model_providers.ollama.base_url="+nowhere) // for -c
	calls, err := newCallProcess(env)
	if err != nil {
		return err
	}
	env.Values[callKey{}] = calls
	return os.Mkdir(home, 0o755)
}

func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "mount":
		return canMount(), nil
	case "readonly":
		return os.Geteuid() != 0 || canMount(), nil
	case "long":
		return longtest.On(), nil
	}
	return false, errors.New("unknown condition")
}

// cmdExits is "exits CODE PROGRAM ARGS...": exec that looks at the exit code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	code := 0
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	checkCode(ts, code, args[0])
}

func checkCode(ts *testscript.TestScript, code int, want string) {
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// cmdConversation is "conversation NAME": puts the id of the conversation changed last
// into $NAME, and its file into $NAME_FILE.
func cmdConversation(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conversation NAME")
	}
	e, err := engine.Open(context.Background(), engine.Config{Store: file.New(ts.Getenv("FERMATA_HOME")), Model: demo.New()})
	ts.Check(err)
	page, err := e.List(context.Background(), engine.ListOptions{Limit: 1})
	ts.Check(err)
	if len(page.Items) == 0 {
		ts.Fatalf("there is no conversation")
	}
	s := page.Items[0]
	ts.Setenv(args[0], string(s.ID))
	ts.Setenv(args[0]+"_PREFIX", string(s.ID)[:len(s.ID)-2])
	ts.Setenv(args[0]+"_FILE", s.Path)
}

// cmdReadonly is "readonly DIR": DIR, with what is in it, cannot be written to
// until the script ends.
func cmdReadonly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: readonly DIR")
	}
	undo, err := makeReadonly(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(undo)
}

// chmodDirs changes a directory and those in it.
func chmodDirs(dir string, mode fs.FileMode) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return os.Chmod(path, mode)
	})
}

// cmdTmpfs is "tmpfs DIR SIZE": mounts a small disk.
func cmdTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	undo, err := mountTmpfs(ts.MkAbs(args[0]), args[1])
	ts.Check(err)
	ts.Defer(undo)
}

// Every command says how it is used: what it does, in one line that begins with a
// capital letter, and an example. Flags that take a value name it.
func TestHelpIsComplete(t *testing.T) {
	root := newRoot(cli.Stdio())
	eachCommand(root, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Example == "" && path != "fermata version" {
			t.Errorf("%s has no example", path)
		}
		if s := cmd.Short; s == "" || s[:1] != strings.ToUpper(s[:1]) || strings.HasSuffix(s, ".") {
			t.Errorf("%s: the short help is %q", path, s)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") || !strings.Contains(line, "fermata") {
				t.Errorf("%s: the example %q", path, line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); f.Value.Type() != "bool" && !f.Hidden && (!strings.Contains(f.Usage, "`") || name != strings.ToUpper(name)) {
				t.Errorf("%s --%s does not name its value in capital letters", path, f.Name)
			}
		})
	})
}

// A command that runs turns is the same if the others are left out.
func TestCommandsAlone(t *testing.T) {
	for _, name := range []string{"exec", "e", "review", "approve"} {
		alone, _, err := newRoot(cli.Stdio(), name, "--help").Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := newRoot(cli.Stdio()).Find([]string{name})
		if err != nil || len(alone.Parent().Commands()) >= len(all.Parent().Commands()) {
			t.Errorf("%s: %d of %d commands, error %v", name, len(alone.Parent().Commands()), len(all.Parent().Commands()), err)
		}
		if d := cmp.Diff(all.Long+all.UsageString(), alone.Long+alone.UsageString()); d != "" {
			t.Errorf("%s (-all +alone):\n%s", name, d)
		}
	}
}

// eachCommand calls do for every command that can be run and is shown in a help.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Runnable() && !cmd.Hidden {
		do(cmd)
	}
	for _, c := range cmd.Commands() {
		eachCommand(c, do)
	}
}
