package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// resolve finds a conversation by its id, the beginning of its id, or its title.
func resolve(ctx context.Context, e *engine.Local, name string) (p.ConversationID, error) {
	if name == "" {
		return "", usage("%w", errWhich)
	}
	var near []string
	var found []engine.Summary
	for s, err := range all(ctx, e, engine.ListOptions{}) {
		if err != nil {
			return "", err
		}
		switch {
		case string(s.ID) == name:
			return s.ID, nil
		case strings.HasPrefix(string(s.ID), name), s.Title == name:
			found = append(found, s)
		case len(near) < 3:
			near = append(near, fmt.Sprintf("%s %s", s.ID, s.Title))
		}
	}
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return "", &exitError{
			code: exitFailed, err: fmt.Errorf("%q: %w", name, engine.ErrNotFound),
			hint: nearest(near),
		}
	}
	return "", &exitError{
		code: exitFailed, err: fmt.Errorf("%q fits %d conversations", name, len(found)),
		hint: fmt.Sprintf("give more of the id: %s or %s", found[0].ID, found[1].ID),
	}
}

func nearest(near []string) string {
	if len(near) == 0 {
		return "there are no conversations yet"
	}
	return "the latest are:\n  " + strings.Join(near, "\n  ")
}
