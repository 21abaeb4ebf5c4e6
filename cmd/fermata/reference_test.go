package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// docs/reference.md names every command that the help names.
func TestReferenceNamesEveryCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range newRoot(cli.Stdio()).Commands() {
		if cmd.IsAvailableCommand() && !regexp.MustCompile("(fermata |`)"+cmd.Name()+"\\b").Match(page) {
			t.Errorf("docs/reference.md has no line for fermata %s", cmd.Name())
		}
	}
}
