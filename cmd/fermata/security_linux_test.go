package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// The attacks of this file are those that docs/security.md names. Each runs as
// the user of the tests and, if that is root, as an ordinary user as well; a plain
// run then has the latter only.
func asEachUser(t *testing.T, attack func(t *testing.T, pl *place)) {
	t.Helper()
	t.Run("own", func(t *testing.T) {
		if os.Getuid() == 0 {
			longtest.Only(t)
		}
		attack(t, newPlace(t))
	})
	t.Run("nobody", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can become another user")
		}
		attack(t, newPlaceFor(t, nobody))
	})
}

// as runs a shell script in the working directory as the user of the place.
func (pl *place) as(script string) {
	pl.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = pl.work
	cmd.Env = append(pl.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	cmd.SysProcAttr = pl.command(pl.t.Context()).SysProcAttr
	if out, err := cmd.CombinedOutput(); err != nil {
		pl.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// A repository whose configuration, attributes and hooks name programs gets none
// of them run by snapshots, which fermata takes unconfined.
func TestAttackRepositoryNamesPrograms(t *testing.T) {
	t.Parallel()
	needsGit(t)
	asEachUser(t, func(t *testing.T, pl *place) {
		mark := filepath.Join(pl.dir, "home", "mark") // where the sandbox lets nobody write
		pl.as(`git init -q -b main; echo 1 > a; git add a; git commit -q -m first
			printf '#!/bin/sh\ntouch %s\ncat\n' "` + mark + `" > evil; chmod +x evil
			echo '* filter=evil diff=evil' > .gitattributes
			for key in core.fsmonitor core.pager diff.external diff.evil.command diff.evil.textconv filter.evil.clean filter.evil.smudge filter.evil.process; do
				git config $key "$PWD/evil"
			done
			for hook in post-index-change pre-commit; do cp evil .git/hooks/$hook; done`)
		out, errs, code := pl.run("exec", "--demo", "--snapshot", "run: echo 2 > a")
		if exists(mark) {
			t.Errorf("a program that the repository names was run: %d\n%s%s", code, out, errs)
		}
		_, errs, code = pl.run("undo", "--yes", string(pl.conversations()[0].ID))
		if exists(mark) {
			t.Errorf("undo ran a program that the repository names: %d\n%s", code, errs)
		}
		pl.as(`git -c core.fsmonitor=false diff > /dev/null`)
		if !exists(mark) {
			t.Error("a plain git runs nothing either, so that this proves nothing")
		}
	})
}

// A command in the background swaps a directory and a link all the time while
// patches are applied: none is written to where the link points.
func TestAttackSwappedDirectories(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip(err)
	}
	asEachUser(t, func(t *testing.T, pl *place) {
		outside := filepath.Join(pl.dir, "home", "outside")
		pl.as(`mkdir "` + outside + `" d; ln -s "` + outside + `" l; touch "` + outside + `/before"
			echo 'touch swaps; exec perl -e "while (1) { rename qw(d x); rename qw(l d); rename qw(d l); rename qw(x d) }"' > swap`)
		steps := []string{"start: sh swap 2> /dev/null", "run: while [ ! -e swaps ]; do sleep 0.01; done"}
		for range longtest.Default(25, 12) {
			steps = append(steps, "write d/file: text")
		}
		_, errs, code := pl.run("exec", "--demo", "-c", execFlavour,
			"-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true",
			"plan: "+strings.Join(steps, "; "))
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 1 {
			t.Errorf("exit code %d: outside are %v, %v\n%s", code, entries, err, errs)
		}
	})
}

// The variable that holds a key does not reach commands, whatever its name, nor does the file with
// the key to the store.
func TestAttackKeyInTheEnvironment(t *testing.T) {
	t.Parallel()
	asEachUser(t, func(t *testing.T, pl *place) {
		home := filepath.Join(pl.dir, "home", "fermata")
		pl.as(`mkdir -p "` + home + `"; printf '[model_providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\nenv_key = "MY_LOGIN"\n` +
			`[mcp_servers.m]\nurl = "http://127.0.0.1:1"\nbearer_token_env_var = "MY_BEARER"\nenabled = false\n[store]\ncreds = "` + pl.dir + `/home/fleet.creds"\n` +
			`[shell_environment_policy]\nignore_default_excludes = true\n' > "` + home + `/config.toml"; echo sesame > "` + pl.dir + `/home/fleet.creds"`)
		pl.env = append(pl.env, "MY_LOGIN=sesame", "MY_BEARER=sesame", "ANTHROPIC_API_KEY=sesame", "FERMATA_STORE_PASSWORD=sesame", "FERMATA_STORE_TOKEN=sesame", "MY_OTHER=open")
		out, errs, _ := pl.run("exec", "--demo", "run: env; cat "+pl.dir+"/home/fleet.creds; echo done")
		if strings.Contains(out+errs, "sesame") || !strings.Contains(out+errs, "MY_OTHER=open") {
			t.Errorf("the command's environment:\n%s%s", out, errs)
		}
	})
}

// An AGENTS.md that is a link to a file of the user's is not sent, and a pipe in
// its place does not hold up the start.
func TestAttackInstructions(t *testing.T) {
	t.Parallel()
	asEachUser(t, func(t *testing.T, pl *place) {
		pl.as(`echo sesame > "$HOME/secret"; mkdir -p sub; mkdir .git; ln -s "$HOME/secret" AGENTS.md; mkfifo sub/AGENTS.md`)
		_, errs, code := pl.run("exec", "--demo", "-C", "sub", "talk 1")
		contains(t, "stderr", errs, "AGENTS.md: is left out: it is a link to a file outside of the project", "sub/AGENTS.md: is left out: not a regular file")
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		for _, e := range pl.events(string(pl.conversations()[0].ID)) {
			if body := string(must1(e.MarshalJSON())); strings.Contains(body, "sesame") {
				t.Errorf("it is recorded: %s", body)
			}
		}
	})
}

func must1(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// Without a sandbox a safe git is not run unasked: it would run what the
// repository names.
func TestAttackSafeGit(t *testing.T) {
	t.Parallel()
	needsGit(t)
	asEachUser(t, func(t *testing.T, pl *place) {
		pl.as(`git init -q -b main; echo 1 > a; git add a; git commit -q -m first; echo 2 > a
			printf '#!/bin/sh\ntouch mark\n' > evil; chmod +x evil; git config diff.external "$PWD/evil"`)
		for _, command := range []string{"git diff", "cd . && git diff", "git -C . diff"} {
			_, _, code := pl.run("exec", "--demo", "--park", "-s", "danger-full-access", "-a", "untrusted", "run: "+command)
			if exists(filepath.Join(pl.work, "mark")) || code != exitWaiting {
				t.Errorf("%s ran unasked: exit code %d", command, code)
			}
		}
	})
}

// What list and show print steers no terminal, also behind a pipe.
func TestAttackTextInPipes(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	id := pl.converse("exec", "--demo", "talk 1 "+hostile)
	text, _ := json.Marshal(hostile) // a constant
	session := strings.ReplaceAll(`{"type":"session_meta","payload":{"id":X,"cwd":X}}`+"\n"+
		`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":X}]}}`+"\n"+
		`{"type":"response_item","payload":{"type":"function_call","name":X,"arguments":"{}","call_id":X}}`, "X", string(text))
	pl.file("rollout.jsonl", session)
	pl.as("mkdir -p codex/sessions/2026/11/01; mv rollout.jsonl codex/sessions/2026/11/01/rollout-2026-11-01T10-00-00-0199a0c2-aaaa-7bbb-8ccc-111122223333.jsonl")
	for _, args := range [][]string{{"list"}, {"show", id}, {"import", "codex", "./codex"}, {"import", "codex", "./codex", "--check"}} {
		if out, _, _ := pl.run(args...); steers(out) || out == "" {
			t.Errorf("%q prints %q", args, out)
		}
	}
}
