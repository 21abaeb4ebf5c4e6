package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoHome means that no variable says where the person's files are.
var ErrNoHome = errors.New("neither FERMATA_HOME nor the home directory is known")

// Home is where configuration and conversations live: $FERMATA_HOME, else
// $CODEX_HOME, else ~/.fermata. It need not exist.
func Home(env func(string) string) (string, error) {
	for _, name := range []string{"FERMATA_HOME", "CODEX_HOME"} {
		if dir := env(name); dir != "" {
			return filepath.Abs(dir)
		}
	}
	dir := userHome(env)
	if dir == "" {
		return "", ErrNoHome
	}
	return filepath.Abs(filepath.Join(dir, ".fermata"))
}

// Homes lists all directories that Home may return for the same person, in
// another environment.
func Homes(env func(string) string) []string {
	var list []string
	for _, name := range []string{"FERMATA_HOME", "CODEX_HOME"} {
		if dir, err := filepath.Abs(env(name)); env(name) != "" && err == nil {
			list = append(list, dir)
		}
	}
	if dir := userHome(env); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, ".fermata"))
	}
	return list
}

func userHome(env func(string) string) string {
	if runtime.GOOS == "windows" {
		return env("USERPROFILE")
	}
	return env("HOME")
}

// WithDotEnv returns an environment in which the variables of .env in the home
// directory are set as well, unless env has them already. Names that begin with
// CODEX_ or FERMATA_ are left out, with a warning: a file in the home must not say where
// the home is. Without such a file env itself is returned.
func WithDotEnv(home string, env func(string) string) (func(string) string, []Warning, error) {
	file := filepath.Join(home, ".env")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil, nil
	}
	if err != nil {
		return env, nil, fmt.Errorf("read variables: %w", err)
	}
	vars, warnings := parseDotEnv(file, string(text))
	return func(name string) string {
		if v := env(name); v != "" {
			return v
		}
		return vars[name]
	}, warnings, nil
}

// parseDotEnv reads lines NAME=value. Values never get into a warning.
func parseDotEnv(file, text string) (map[string]string, []Warning) {
	vars := map[string]string{}
	var warnings []Warning
	for i, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, why := parseVariable(line)
		if why != "" {
			warnings = append(warnings, Warning{Problem: Problem{Source: Source{Kind: FromFile, File: file, Line: i + 1, Column: 1}, Key: name, Text: why}})
			continue
		}
		vars[name] = value
	}
	return vars, warnings
}

func parseVariable(line string) (name, value, why string) {
	if rest, ok := strings.CutPrefix(line, "export "); ok {
		line = rest
	}
	name, value, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.ContainsAny(name, " \t'\"") {
		return "", "", "want NAME=value; the line is left out"
	}
	for _, prefix := range []string{"CODEX_", "FERMATA_"} {
		if strings.HasPrefix(strings.ToUpper(name), prefix) {
			return name, "", "is not taken from this file; set it in the environment"
		}
	}
	value, ok = dotEnvValue(strings.TrimSpace(value))
	if !ok {
		return name, "", "the quote is not closed; the line is left out"
	}
	return name, value, ""
}

var dotEnvEscapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\$`, "$")

// dotEnvValue takes quotes and a comment off.
func dotEnvValue(s string) (string, bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		if i := strings.Index(" "+s, " #"); i >= 0 {
			s = s[:max(i-1, 0)]
		}
		return strings.TrimSpace(s), true
	}
	for end := 1; end < len(s); end++ {
		switch {
		case s[0] == '"' && s[end] == '\\':
			end++
		case s[end] == s[0] && s[0] == '\'':
			return s[1:end], true
		case s[end] == s[0]:
			return dotEnvEscapes.Replace(s[1:end]), true
		}
	}
	return "", false
}
