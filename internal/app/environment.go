package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/prompt"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// instructions are the built-in ones for the model of some settings.
func instructions(s p.Settings) string {
	family := catalogue.FamilyOf(s.Model)
	return prompt.Instructions(family.Name, family.Edit == catalogue.EditPatch)
}

// machine describes this machine for the model, without git. It neither
// waits nor runs anything.
func machine(p.Settings) p.Environment {
	now := time.Now()
	return p.Environment{
		Shell: filepath.Base(tool.Interpreter()), OS: runtime.GOOS + " (" + runtime.GOARCH + ")", Date: now.Format("2006-01-02 (Monday)"), TimeZone: zone(now),
	}
}

// zone is the name of the time zone, and how far it is from UTC.
func zone(now time.Time) string {
	name := os.Getenv("TZ")
	if target, err := os.Readlink("/etc/localtime"); name == "" && err == nil {
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	if name == "" {
		name, _ = now.Zone()
	}
	return name + " (UTC" + now.Format("-07:00") + ")"
}

// gitLimit is how long a new conversation waits for what git says.
const gitLimit = 50 * time.Millisecond

// environment describes the machine for the model when a conversation begins.
func environment(ctx context.Context, home string, s p.Settings) p.Environment {
	e := machine(s)
	e.Git = gitState(ctx, home, s.Cwd)
	return e
}

// gitState says whether a directory is in a git repository, on which branch, and
// whether that has changes. What takes too long is left out.
func gitState(ctx context.Context, home, dir string) string {
	where, err := git.Find(dir)
	if errors.Is(err, git.ErrNotFound) {
		return "no repository"
	}
	if err != nil {
		return ""
	}
	text := "repository"
	if where.Root != filepath.Clean(dir) {
		text += " at " + where.Root
	}
	if branch := git.Branch(dir); branch != "" {
		text += ", branch " + branch
	}
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	if dirty, err := git.Dirty(ctx, gitOptions(home, dir)); err == nil {
		text += map[bool]string{true: ", with uncommitted changes", false: ", no uncommitted changes"}[dirty]
	}
	return text
}

// withSkills adds the list of skills to what AGENTS.md files say.
func withSkills(docs, home, cwd string) string {
	user, _ := os.UserHomeDir() // without one there are no skills in it
	list := skills.Text(skills.Find(home, user, cwd))
	if docs == "" || list == "" {
		return docs + list
	}
	return strings.TrimRight(docs, "\n") + "\n\n" + list
}

// Prompts lists the prompt files that can be sent by their name in a directory.
func (a *App) Prompts(cwd string) []skills.Prompt { return skills.Prompts(a.Config.Home, cwd) }
