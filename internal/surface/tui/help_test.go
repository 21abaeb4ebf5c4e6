package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

var listAll = engine.ListOptions{Limit: 1000}

func press(key string) tea.KeyPressMsg { return tuitest.Press(key) }

func occurrences(text, word string) int { return strings.Count(text, word) }
