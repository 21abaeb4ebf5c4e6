package config

import "testing"

func TestWindow(t *testing.T) {
	for model, want := range map[string]int64{
		"gpt-5": 272_000, "gpt-5-codex": 272_000, "gpt-4.1-mini": 1_047_576, "gpt-4o": 128_000,
		"claude-opus-4-1": 200_000, "anthropic/claude-opus-4-1": 200_000, "openai/gpt-oss-20b": 131_072,
		"claude-sonnet-4-6": 1_000_000, "gpt-5.1-chat-latest": 128_000, "mock-model": 0, "": 0, "llama3": 0, "my-gpt-5": 0,
	} {
		if got := (&Config{}).Window("", model); got != want {
			t.Errorf("%q: %d, want %d", model, got, want)
		}
		if got := (&Config{ContextWindow: 7}).Window("", model); got != 7 {
			t.Errorf("%q: %d, want what is configured", model, got)
		}
	}
}
