package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A client may bring its own model provider with a conversation. Its settings then name the
// provider and, behind this, which definition of it is meant: so one conversation's
// provider is never another's, even if both call it the same.
const definedBy = "#"

// providerOverrides are those values of a request that define providers.
func providerOverrides(req SettingsRequest) []string { return definesProvider(overrides(req)) }

// definesProvider picks the overrides, each key=value, that say what a provider is.
func definesProvider(overrides []string) []string {
	var list []string
	for _, o := range overrides {
		if key := config.OverrideKey(o); len(key) > 0 && (key[0] == "model_providers" || key[0] == "openai_base_url") {
			list = append(list, o)
		}
	}
	return list
}

// define returns the name of a provider that is defined by some values beside
// what is configured. They are kept, so that the conversation can be resumed by another process.
func (m *Models) define(provider string, values []string) (string, error) {
	if len(values) == 0 {
		return provider, nil
	}
	id, before, err := m.defined(provider)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(append(before, values...))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	key := hex.EncodeToString(sum[:6])
	if err := m.keep(key, text); err != nil {
		return "", fmt.Errorf("keep the definition of provider %s: %w", id, err)
	}
	return id + definedBy + key, nil
}

// keep writes a definition, whole or not at all. Only we may read it: it may hold headers.
func (m *Models) keep(key string, text []byte) error {
	file := m.definition(key)
	if _, err := os.Stat(file); err == nil {
		return nil // by the sum of its content it is the same
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return regular.Replace(file, text, 0o600)
}

func (m *Models) definition(key string) string {
	return filepath.Join(m.config.Home, "providers", key+".json")
}

// defined takes a provider's name apart, and returns the values that define it beside
// what is configured.
func (m *Models) defined(provider string) (id string, values []string, err error) {
	id, key, ok := strings.Cut(provider, definedBy)
	if !ok {
		return id, nil, nil
	}
	text, err := secrets.Home(m.config.Home).Read(m.definition(filepath.Base(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil, fmt.Errorf("provider %s was defined by the client that began the conversation, and its definition is gone", id)
	}
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		return id, nil, fmt.Errorf("read the definition of provider %s: %w", id, err)
	}
	return id, values, nil
}
