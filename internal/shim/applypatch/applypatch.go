// Package applypatch is the command apply_patch, which the commands of a model find
// in their PATH: this program under another name. It passes a patch on to the fermata
// that runs the command.
package applypatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/proc/socket"
)

// IsCommand reports whether this process was started as the command.
func IsCommand() bool {
	return slices.Contains(names, filepath.Base(os.Args[0]))
}

// Main has fermata apply a patch, which checks, records and undoes it like one of the
// tool. The result is the exit code.
func Main() int {
	text, err := readPatch(os.Args[1:], os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apply_patch:", err)
		return 2
	}
	answer, err := askFor(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apply_patch:", err)
		return 1
	}
	if answer.ExitCode != 0 {
		fmt.Fprintln(os.Stderr, strings.TrimSpace(answer.Text))
		return answer.ExitCode
	}
	fmt.Println(strings.TrimSpace(answer.Text))
	return 0
}

// readPatch returns the patch: the only argument, or what is on standard input.
func readPatch(args []string, stdin io.Reader) (string, error) {
	if len(args) > 1 {
		return "", errors.New("too many arguments; usage: apply_patch PATCH, or apply_patch with the patch on standard input")
	}
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	text, err := io.ReadAll(io.LimitReader(stdin, socket.MaxPatch+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the patch: %w", err)
	case len(text) > socket.MaxPatch:
		return "", fmt.Errorf("the patch is larger than %d MiB", socket.MaxPatch>>20)
	}
	return string(text), nil
}

func askFor(text string) (answer socket.PatchAnswer, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return answer, fmt.Errorf("find the working directory: %w", err)
	}
	reply, err := socket.Ask([]byte(dir + "\x00" + text))
	if errors.Is(err, socket.ErrNotServed) {
		return answer, fmt.Errorf("not available here: %w; call the tool apply_patch, not the command", err)
	}
	if err != nil {
		return answer, err
	}
	if len(reply) == 0 {
		return answer, errors.New("fermata did not answer; look at the files before you go on")
	}
	err = json.Unmarshal(reply, &answer)
	return answer, err
}
