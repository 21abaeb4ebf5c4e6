package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A model is offered one way to run commands and one way to change files: with
// both it would mix them up. What is not offered is still carried out.
func TestOneFlavourOfEachTool(t *testing.T) {
	const look = "read_file list_files grep update_plan web_fetch"
	for _, tt := range []struct {
		model string
		exec  bool
		want  string
	}{
		{"gpt-5.2-codex", true, "exec_command write_stdin apply_patch " + look},
		{"claude-sonnet-4-5", true, "exec_command write_stdin edit write " + look},
		{"claude-sonnet-4-5", false, "shell edit write " + look},
		{"gpt-5", false, "shell apply_patch " + look},
		{"", true, "exec_command write_stdin edit write " + look},
	} {
		cfg, _, err := config.Load(config.Options{Cwd: t.TempDir(), Env: env(t.TempDir())})
		if err != nil {
			t.Fatal(err)
		}
		cfg.UseExecCommandTool, cfg.ViewImage = tt.exec, false
		kit := &toolkit{config: cfg, models: &Models{config: cfg}}
		list := kit.builtin(p.Settings{Model: tt.model})
		var names []string
		for _, spec := range tool.Offered(list) {
			names = append(names, spec.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s is offered %s, want %s", tt.model, got, tt.want)
		}
		for _, name := range []string{"shell", "container.exec", "exec_command", "write_stdin", "apply_patch", "edit", "write", "user_shell"} {
			if tool.Find(list, name) == nil {
				t.Errorf("%s: a call of %s is not carried out", tt.model, name)
			}
		}
	}
}

func env(home string) func(string) string {
	return func(name string) string {
		if name == "FERMATA_HOME" {
			return home
		}
		return ""
	}
}

// The tools that only look run in this process, which knows keys.
func TestSecretFiles(t *testing.T) {
	home := t.TempDir()
	secret := secretFiles(&config.Config{Home: home})
	real := resolveDir(home)
	for _, path := range []string{"/proc/self/environ", "/proc/1/environ", real + "/.env", real + "/config.toml", real + "/providers/x.json", real + "/auth.json"} {
		if !secret(path) {
			t.Errorf("%s may be read", path)
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	link, hard := token+"-link", token+"-hard"
	err := errors.Join(os.WriteFile(token, []byte("sesame"), 0o600), os.Symlink(token, link), os.Link(token, hard))
	if err != nil || secret(token) {
		t.Fatalf("before it is registered: %v, secret %t", err, secret(token))
	}
	if _, err := secrets.Home(home).Read(token); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{token, link, hard} {
		if !secret(path) {
			t.Errorf("%s may be read although it is registered", path)
		}
	}
	for _, path := range []string{"/process", "/etc/hosts", real + "/AGENTS.md", real + "/skills/x/.env", real + "/../.env"} {
		if secret(path) {
			t.Errorf("%s may not be read", path)
		}
	}
}

// Each tool that reads files is told which ones are secret.
func TestToolsKnowWhatIsSecret(t *testing.T) {
	cfg, _, err := config.Load(config.Options{Cwd: t.TempDir(), Env: env(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	cfg.ViewImage = true
	found := 0
	for _, of := range (&toolkit{config: cfg, models: &Models{config: cfg}}).builtin(p.Settings{Model: "gpt-5"}) {
		var secret func(string) bool
		switch x := of.(type) {
		case *tool.Read:
			secret = x.Files.Secret
		case *tool.List:
			secret = x.Files.Secret
		case *tool.Grep:
			secret = x.Files.Secret
		case *tool.Patch:
			secret = x.Secret
		case tool.ViewImage:
			secret = x.Secret
		default:
			continue
		}
		found++
		if secret == nil || !secret("/proc/self/environ") {
			t.Errorf("%s is not told", of.Spec().Name)
		}
	}
	if found != 5 {
		t.Errorf("%d tools were found", found)
	}
}
