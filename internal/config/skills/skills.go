// Package skills finds what a project and its user keep for the model and for themselves: skills, which
// the model reads when a task fits, and prompts, which are sent by their name.
package skills

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/rootfs"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A Skill is a folder with a SKILL.md, which the model reads when a task fits its
// description.
type Skill struct {
	Name        string
	Description string
	File        string // the SKILL.md
	Project     bool   // it is the project's, not the user's
}

// A Prompt is a message that the user keeps in a file, and sends by its name
// as "/name arguments".
type Prompt struct {
	Name        string
	Description string
	Arguments   string // a hint at what they are
	Text        string
	File        string
}

const (
	maxSkills    = 100
	maxSkillHead = 16 << 10
	maxPrompt    = 256 << 10
)

// The directories in which agents keep skills and prompts, in a project and in the
// user's home directory.
var agentDirs = []string{".fermata", ".agents", ".claude", ".codex"}

// Find lists the skills of the project, from its root to cwd, then those of
// fermata's home and of the user's. Of two with one name the first counts. Those
// that cannot be read are left out.
func Find(home, user, cwd string) []Skill {
	var list []Skill
	hidden := secrets.Home(home).Files()
	add := func(dir, root string, project bool) {
		entries, _ := regular.ReadDir(dir)
		for _, e := range entries {
			s, ok := readSkill(filepath.Join(dir, e.Name(), "SKILL.md"), root, hidden)
			s.Project = project
			if ok && len(list) < maxSkills && !slices.ContainsFunc(list, func(o Skill) bool { return o.Name == s.Name }) {
				list = append(list, s)
			}
		}
	}
	dirs := config.ProjectDirs(cwd, 1)
	for _, dir := range slices.Backward(dirs) {
		for _, agent := range agentDirs {
			add(filepath.Join(dir, agent, "skills"), dirs[0], true)
		}
	}
	add(filepath.Join(home, "skills"), "/", false)
	if user != "" {
		for _, agent := range agentDirs {
			add(filepath.Join(user, agent, "skills"), "/", false)
		}
	}
	return list
}

func readSkill(file, root string, hidden []string) (Skill, bool) {
	text, err := readBelow(file, root, hidden, maxSkillHead)
	if err != nil {
		return Skill{}, false
	}
	head, _ := frontMatter(text)
	s := Skill{Name: head["name"], Description: head["description"], File: file}
	if s.Name == "" {
		s.Name = filepath.Base(filepath.Dir(file))
	}
	return s, s.Description != ""
}

// Text describes the skills to a model, "" if there are none.
func Text(list []Skill) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Skills\n\nA skill is a folder with instructions for a kind of task. When the task fits the description of one, " +
		"read its file with read_file first and follow it; paths in it are relative to its folder.\n")
	for _, s := range list {
		fmt.Fprintf(&b, "\n- %s: %s (%s)", s.Name, s.Description, s.File)
	}
	return b.String()
}

// Prompts lists the prompt files of fermata's home, then those of the project,
// sorted by name. Of two with one name that of the home counts.
func Prompts(home, cwd string) []Prompt {
	var list []Prompt
	hidden := secrets.Home(home).Files()
	add := func(dir, root string) {
		entries, _ := regular.ReadDir(dir)
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".md")
			if !ok || name == "" || strings.ContainsAny(name, " \t\n/") || slices.ContainsFunc(list, func(o Prompt) bool { return o.Name == name }) {
				continue
			}
			file := filepath.Join(dir, e.Name())
			text, err := readBelow(file, root, hidden, maxPrompt)
			if err != nil || strings.TrimSpace(text) == "" {
				continue
			}
			head, body := frontMatter(text)
			list = append(list, Prompt{name, head["description"], head["argument-hint"], strings.TrimSpace(body), file})
		}
	}
	add(filepath.Join(home, "prompts"), "/")
	dirs := config.ProjectDirs(cwd, 1)
	for _, dir := range slices.Backward(dirs) {
		for _, agent := range agentDirs {
			add(filepath.Join(dir, agent, "prompts"), dirs[0])
			add(filepath.Join(dir, agent, "commands"), dirs[0])
		}
	}
	slices.SortFunc(list, func(a, b Prompt) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Expand is the message for some arguments: $1 to $9 are theirs, $ARGUMENTS all of
// them, $NAME the value of NAME=value among them, and $$ a dollar. Arguments that
// the text has no place for follow it.
func (f Prompt) Expand(arguments string) string {
	words := SplitWords(arguments)
	named := map[string]string{}
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok {
			named[name] = value
		}
	}
	used := false
	text := os.Expand(f.Text, func(name string) string {
		if name == "$" {
			return "$"
		}
		if name == "ARGUMENTS" || name == "@" || name == "*" {
			used = true
			return arguments
		}
		if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
			used = true
			if i := int(name[0] - '1'); i < len(words) {
				return words[i]
			}
			return ""
		}
		if value, ok := named[name]; ok {
			used = true
			return value
		}
		return "$" + name // a text about shells, most likely
	})
	if arguments = strings.TrimSpace(arguments); arguments != "" && !used {
		text += "\n\n" + arguments
	}
	return text
}

// ExpandPrompt returns the message for a line that begins with "/name", and
// whether there is such a prompt file.
func ExpandPrompt(list []Prompt, line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok {
		return line, false
	}
	name, arguments, _ := strings.Cut(rest, " ")
	name = strings.TrimPrefix(strings.TrimSpace(name), "prompts:")
	for _, f := range list {
		if f.Name == name {
			return f.Expand(arguments), true
		}
	}
	return line, false
}

// SplitWords splits arguments at blanks; quotes keep them together.
func SplitWords(s string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

// readBelow reads the beginning of a file whose real path is below root, and is none of those that are hidden from commands and
// models because they hold a secret.
func readBelow(file, root string, hidden []string, most int64) (string, error) {
	f, err := rootfs.OpenRegular(file, func(real string) error {
		if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
			return errors.New("it is a link to a file outside of the project")
		}
		if secrets.Among(real, hidden) {
			return errors.New("it holds a secret")
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}

// frontMatter splits the settings at the top of a Markdown file, between two lines
// of three dashes, from its text. Only "name: value" is understood, with values that
// may go on in lines that are indented.
func frontMatter(text string) (head map[string]string, body string) {
	head = map[string]string{}
	rest, ok := strings.CutPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "---\n")
	if !ok {
		return head, text
	}
	block, body, ok := strings.Cut(rest, "\n---")
	if !ok {
		return head, text
	}
	_, body, _ = strings.Cut(body, "\n")
	last := ""
	for line := range strings.SplitSeq(block, "\n") {
		name, value, ok := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			if last != "" {
				head[last] = strings.TrimSpace(head[last] + " " + strings.TrimSpace(line))
			}
		case ok && !strings.HasPrefix(line, "#"):
			last = strings.ToLower(strings.TrimSpace(name))
			value = strings.TrimSpace(value)
			if value == ">" || value == "|" || value == ">-" || value == "|-" {
				value = ""
			}
			head[last] = strings.Trim(value, `"'`)
		}
	}
	return head, body
}
