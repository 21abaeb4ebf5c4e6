package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Settings that git cannot even list a configuration with, if they are wrong. Left
// out besides are those that our git gets, which are no programs.
var structural = regexp.MustCompile(`^(core\.(repositoryformatversion|bare|worktree)|extensions\..*|include(if)?\..*|safe\..*)$`)

var wellFormed = regexp.MustCompile(`^[A-Za-z0-9-]+\.(.*\.)?[A-Za-z][A-Za-z0-9-]*$`)

var placeholder = regexp.MustCompile(`<[^>]*>|\*`)

// settings returns every setting that this git knows, and those that name programs
// in versions that it may not be, each with the canary for its value.
func (s *site) settings() string {
	s.t.Helper()
	out, err := exec.Command("git", "help", "--config").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	keys := append(strings.Fields(string(out)), programs...)
	var b strings.Builder
	n := 0
	for _, key := range keys {
		key = placeholder.ReplaceAllString(key, "evil")
		if !wellFormed.MatchString(key) || structural.MatchString(strings.ToLower(key)) || kept().MatchString(strings.ToLower(key)) {
			continue
		}
		n++
		writeSetting(&b, key, s.program)
	}
	if n < 500 {
		s.t.Fatalf("only %d settings are known, so this proves little", n)
	}
	return b.String()
}

// programs are the settings whose values git, or a program that comes with it, runs.
var programs = strings.Fields(`
	alias.evil alias.status alias.diff alias.add browser.evil.cmd browser.evil.path core.alternateRefsCommand core.askPass core.editor
	core.fsmonitor core.gitProxy core.hooksPath core.pager core.sshCommand credential.helper credential.evil.helper
	diff.external diff.evil.command diff.evil.textconv diff.guitool diff.tool difftool.evil.cmd difftool.evil.path
	filter.evil.clean filter.evil.smudge filter.evil.process filter.lfs.clean filter.lfs.process gc.recentObjectsHook gpg.program gpg.evil.program
	gpg.ssh.defaultKeyCommand gpg.x509.program guitool.evil.cmd hook.evil.command hook.evil.event imap.tunnel instaweb.httpd
	interactive.diffFilter lfs.customtransfer.evil.path man.evil.cmd man.evil.path merge.evil.driver merge.tool mergetool.evil.cmd
	mergetool.evil.path pager.add pager.config pager.diff pager.evil receive.procReceiveRefs remote.evil.proxy remote.evil.receivepack
	remote.evil.uploadpack remote.evil.vcs remote.origin.receivepack remote.origin.uploadpack sendemail.headerCmd sendemail.sendmailCmd
	sendemail.smtpServer sendemail.toCmd sequence.editor submodule.evil.update submodule.module.update tar.evil.command trailer.evil.cmd
	trailer.evil.command uploadpack.packObjectsHook web.browser`)

// hooks are all that git knows.
var hooks = strings.Fields(`applypatch-msg commit-msg fsmonitor-watchman p4-changelist post-applypatch post-checkout post-commit
	post-index-change post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push
	pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout query-watchman reference-transaction sendemail-validate update`)

// poison makes a git directory name the canary wherever it can.
func (s *site) poison(gitDir string, more string) {
	s.t.Helper()
	for _, hook := range hooks {
		name := filepath.Join(gitDir, "hooks", hook)
		s.write(name, "#!/bin/sh\nexec '"+s.program+"' hook "+hook+"\n")
		if err := os.Chmod(name, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	s.write(filepath.Join(gitDir, "info/attributes"), "* filter=evil diff=evil merge=evil\n")
	f, err := os.OpenFile(filepath.Join(gitDir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(more); err != nil {
		s.t.Fatal(err)
	}
}

// withModule gives the repository attributes and a submodule.
func (s *site) withModule() {
	s.t.Helper()
	s.write(filepath.Join(s.root, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
	s.plain(s.root, "add", ".")
	s.plain(s.root, "commit", "-q", "-m", "attributes")
	s.plain(s.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", s.root, "module")
	s.plain(s.root, "config", "-f", ".gitmodules", "submodule.module.ignore", "none")
	s.plain(s.root, "commit", "-q", "-am", "module")
}

// hostile makes the repository one that names the canary wherever git would
// look for a program: in its configuration, an included one, hooks, attributes, and
// in a submodule.
func (s *site) hostile(settings string) {
	s.t.Helper()
	s.withModule()
	s.poisonAll(settings)
}

// poisonAll is what hostile does to a repository that has a submodule.
func (s *site) poisonAll(settings string) {
	s.t.Helper()
	included := filepath.Join(s.dir, "included")
	s.write(included, settings)
	s.poison(filepath.Join(s.root, ".git/modules/module"), settings)
	s.poison(filepath.Join(s.root, ".git"), settings+"[include]\n\tpath = "+included+"\n[includeIf \"gitdir:/\"]\n\tpath = "+included+"\n")
	s.write(filepath.Join(s.root, "module/a"), "changed in the submodule\n")
	s.write(filepath.Join(s.root, "a"), "changed\n")
	s.write(filepath.Join(s.root, "new"), "new\n")
}

// Whatever a repository names, git runs nothing of it for us.
func TestNothingThatARepositoryNamesIsRun(t *testing.T) {
	s := newSite(t)
	s.hostile(s.settings())
	for _, dir := range []string{s.root, filepath.Join(s.root, "module")} {
		s.write(filepath.Join(dir, "a"), "changed\n")
		diff, err := s.everything(dir)
		if err != nil || !strings.Contains(diff, "+changed\n") {
			t.Errorf("%s: %v\n%s", dir, err, diff)
		}
		if marks := s.marks(); marks != "" {
			t.Errorf("%s: these were run:\n%s", dir, marks)
		}
	}
}

// The attacks leave out what is taken over from a repository, so nothing of that may name a program.
func TestNoProgramIsTakenOver(t *testing.T) {
	for _, key := range programs {
		if kept().MatchString(strings.ToLower(key)) {
			t.Errorf("%s is taken over", key)
		}
	}
}

// The attacks work: a plain git falls for each.
func TestThePlainGitRunsThem(t *testing.T) {
	s := newSite(t)
	s.withModule()
	fresh := filepath.Join(s.dir, "fresh")
	if err := os.Rename(s.root, fresh); err != nil {
		t.Fatal(err)
	}
	for name, attack := range map[string]struct {
		settings string
		commands []string // each falls for it
	}{
		"filter":   {"[filter \"evil\"]\n\tclean = CANARY\n", []string{"add new"}},
		"textconv": {"[diff \"evil\"]\n\ttextconv = CANARY\n", []string{"diff a"}},
		"driver":   {"[diff \"evil\"]\n\tcommand = CANARY\n", []string{"diff a"}},
		"external": {"[diff]\n\texternal = CANARY\n", []string{"diff a"}},
		// Without it there still are the submodules.
		"fsmonitor": {"[core]\n\tfsmonitor = CANARY\n", []string{"status", "-c core.fsmonitor=false diff HEAD", "-c core.fsmonitor=false add -A"}},
		"hook":      {"", []string{"add new"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{t, s.dir, s.root, s.scratch, s.program}
			if err := errors.Join(os.RemoveAll(s.root), os.CopyFS(s.root, os.DirFS(fresh))); err != nil {
				t.Fatal(err)
			}
			s.poisonAll(strings.ReplaceAll(attack.settings, "CANARY", s.program))
			// A file of the submodule with another time makes git write the index, and run the hook for that.
			if err := os.Chtimes(filepath.Join(s.root, "module/.gitattributes"), time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			for _, command := range attack.commands {
				out, err := s.try(s.root, strings.Fields(command)...)
				if s.marks() == "" {
					t.Errorf("nothing was run by %s, so that this attack proves nothing: %v\n%s", command, err, out)
				}
			}
			if _, err := s.everything(s.root); err != nil {
				t.Error(err)
			}
			if marks := s.marks(); marks != "" {
				t.Errorf("these were run:\n%s", marks)
			}
		})
	}
}

// A partial clone would fetch what it lacks, with a program that its
// configuration names.
func TestMissingObjectsAreNotFetched(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, "gone"), "gone\n")
	s.plain(s.root, "add", "gone")
	s.plain(s.root, "commit", "-q", "-m", "second")
	blob := s.plain(s.root, "rev-parse", "HEAD:gone")
	f, err := os.OpenFile(filepath.Join(s.root, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[protocol \"ext\"]\n\tallow = always\n" +
		"[remote \"evil\"]\n\tpromisor = true\n\turl = ext::" + s.program + " quit\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.root, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.root, "gone"), "changed\n")
	out, err := s.try(s.root, "diff", "HEAD")
	if s.marks() == "" {
		t.Errorf("nothing was run, so that this attack proves nothing: %v\n%s", err, out)
	}
	if _, err := s.everything(s.root); err == nil {
		t.Error("a missing object went unnoticed")
	}
	if marks := s.marks(); marks != "" {
		t.Errorf("these were run:\n%s", marks)
	}
}
