package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

const homeHint = "set HOME, or FERMATA_HOME to where conversations shall be kept"

// openEngine puts the parts together. With cfg zero the engine can read and
// repair, and run nothing.
func openEngine(ctx context.Context, cfg conversation.Config) (*engine.Local, error) {
	dir, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	cfg.Version = version()
	store := journal.NewFileStore(dir, journal.FileOptions{})
	return engine.New(ctx, engine.Options{Store: store, Config: cfg}), nil
}

var errWhich = errors.New("which conversation?")

// find opens the engine and finds a conversation by its name.
func find(ctx context.Context, cfg conversation.Config, name string) (*engine.Local, p.ConversationID, error) {
	e, err := openEngine(ctx, cfg)
	if err != nil {
		return nil, "", err
	}
	id, err := resolve(ctx, e, name)
	return e, id, err
}

// resolve finds a conversation by its id, the beginning of its id, or its title.
func resolve(ctx context.Context, e *engine.Local, name string) (p.ConversationID, error) {
	if name == "" {
		return "", usage("%w", errWhich)
	}
	if id, err := p.ParseConversationID(name); err == nil && readable(ctx, e, id) {
		return id, nil // without a look at all the others, of which there may be thousands
	}
	var others, found []engine.Summary
	for s, err := range all(ctx, e, engine.ListOptions{}) {
		if err != nil {
			return "", err
		}
		switch {
		case string(s.ID) == name:
			return s.ID, nil
		case strings.HasPrefix(string(s.ID), name), s.Title == name:
			found = append(found, s)
		default:
			others = append(others, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return "", &exitError{
			code: exitFailed, err: fmt.Errorf("%q: %w", name, engine.ErrNotFound),
			hint: nearest(name, others),
		}
	}
	return "", &exitError{
		code: exitFailed, err: fmt.Errorf("%q fits %d conversations", name, len(found)),
		hint: fmt.Sprintf("give more of the id: %s or %s", found[0].ID, found[1].ID),
	}
}

func readable(ctx context.Context, e *engine.Local, id p.ConversationID) bool {
	first, stop := iter.Pull2(e.Read(ctx, id))
	defer stop()
	_, err, ok := first()
	return ok && err == nil
}

// nearest names the conversations whose id or title is most like name.
func nearest(name string, others []engine.Summary) string {
	if len(others) == 0 {
		return "there are no conversations yet"
	}
	like := func(s engine.Summary) int {
		title := []rune(s.Title)
		return min(distance([]rune(name), []rune(s.ID)), distance([]rune(name), title[:min(len(title), 2*len(name)+8)]))
	}
	slices.SortStableFunc(others, func(a, b engine.Summary) int { return like(a) - like(b) })
	var lines []string
	for _, s := range others[:min(3, len(others))] {
		lines = append(lines, fmt.Sprintf("%s  %s", s.ID, s.Title))
	}
	return "the nearest are:\n  " + strings.Join(lines, "\n  ")
}

// distance is how many letters must be added, taken away or changed to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range a {
		corner := row[0]
		row[0] = i + 1
		for j, s := range b {
			change := corner
			if r != s {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
