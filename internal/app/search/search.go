// Package search finds conversations by their text. Start with [Matches].
package search

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/fermata-agent/fermata/engine"
)

// maxSearched is how much is read of one conversation when its text is searched.
const maxSearched = 32 << 20

// Matches reports whether a conversation has a text: in its title, its directory, its first or last line, or anywhere in its
// journal where that is a file. Upper and lower case are the same.
func Matches(s engine.Summary, text string) bool {
	text = strings.ToLower(text)
	for _, part := range []string{s.Title, s.Name, s.Cwd, s.FirstLine, s.LastLine} {
		if strings.Contains(strings.ToLower(part), text) {
			return true
		}
	}
	if s.Path == "" {
		return false
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSearched))
	quoted, _ := json.Marshal(text) // as the journal writes it
	return err == nil && bytes.Contains(bytes.ToLower(data), quoted[1:len(quoted)-1])
}
