package config

import (
	"errors"
	"path/filepath"
	"runtime"
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
