package catalogue

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

func TestTheEmbeddedTablesAreWhole(t *testing.T) {
	if err := Check(embedded); err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Collect(Open("").All())); n != 433 {
		t.Errorf("%d models, want 433", n)
	}
	for _, p := range Providers() {
		if p.ID == "" || p.Name == "" || p.EnvKeys[0] == "" || !strings.HasPrefix(p.BaseURL, "https://") ||
			!slices.Contains([]string{"responses", "chat", "anthropic"}, p.Wire) {
			t.Errorf("incomplete: %+v", p)
		}
	}
	if n := len(Providers()); n != 20 {
		t.Errorf("%d providers, want 20", n)
	}
}

func TestFind(t *testing.T) {
	c := Open("")
	for _, tt := range []struct {
		provider, id string
		from         string // the provider of the row
		window       int64
		effort       string
	}{
		{"openai", "gpt-5", "openai", 272_000, "medium"},
		{"", "gpt-5", "openai", 272_000, "medium"},
		{"mine", "gpt-5.1-chat-latest", "openai", 128_000, "medium"},
		{"openai", "gpt-5.5", "openai", 922_000, "medium"},
		{"openai", "gpt-5-2025-08-07", "openai", 272_000, "medium"},
		{"openrouter", "openai/gpt-5", "openrouter", 272_000, "medium"},
		{"litellm", "openai/gpt-5", "openrouter", 272_000, "medium"}, // exact beats the split name
		{"anthropic", "claude-sonnet-4-6", "anthropic", 1_000_000, "medium"},
		{"anthropic", "claude-opus-4-6", "anthropic", 1_000_000, "medium"},
		{"vertex", "claude-opus-4-1@20250805", "anthropic", 200_000, ""},
		{"openrouter", "anthropic/claude-opus-4-1", "anthropic", 200_000, ""},
		{"deepseek", "deepseek-v4-pro", "deepseek", 1_000_000, ""},
		{"ollama-cloud", "deepseek-v4-pro", "ollama-cloud", 0, ""},
		{"mine", "glm-4.6", "zai", 204_800, ""}, // the maker's row, not Ollama's
		{"openai", "gpt-4o-mini", "openai", 128_000, ""},
		{"anthropic", "claude-3-5-sonnet-latest", "anthropic", 200_000, ""},
		{"groq", "openai/gpt-oss-20b", "groq", 131_072, "medium"},
	} {
		m, ok := c.Find(tt.provider, tt.id)
		if !ok || m.Provider != tt.from || tt.window != 0 && m.Window() != tt.window || tt.effort != "" && m.DefaultEffort() != tt.effort {
			t.Errorf("%s %s: %+v %v, window %d, effort %q", tt.provider, tt.id, m, ok, m.Window(), m.DefaultEffort())
		}
	}
	for _, id := range []string{"", "mock-model", "my-gpt-5", "llama3", "provider"} {
		if m, ok := c.Find("openai", id); ok {
			t.Errorf("%q is found: %+v", id, m)
		}
	}
	if _, ok := c.FindExact("groq", "gpt-5"); ok {
		t.Error("groq has no gpt-5")
	}
}

func TestIDs(t *testing.T) {
	c := Open("")
	for _, provider := range []string{"openai", "open", "groq", "mock", ""} {
		var want []string
		for m := range c.All() {
			if m.Provider == provider {
				want = append(want, m.ID)
			}
		}
		if got := c.IDs(provider); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", provider, got, want)
		}
	}
}

func TestEffortIsOnlyMedium(t *testing.T) {
	for efforts, want := range map[string]string{"low/medium/high": "medium", "high": "", "": "", "none/default": ""} {
		var m Model
		if efforts != "" {
			m.Efforts = strings.Split(efforts, "/")
		}
		if got := m.DefaultEffort(); got != want {
			t.Errorf("%s: %q, want %q", efforts, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	m, _ := Open("").Find("openai", "gpt-5") // 1.25 in, 10 out, 0.125 from the cache
	got, ok := m.Cost(protocol.Usage{Input: 1_000_000, Cached: 600_000, Output: 100_000, Reasoning: 50_000})
	if want := 0.4*1.25 + 0.6*0.125 + 0.1*10; !ok || math.Abs(got-want) > 1e-9 {
		t.Errorf("%f %v, want %f", got, ok, want)
	}
	if _, ok := (Model{}).Cost(protocol.Usage{Input: 1}); ok {
		t.Error("an unknown price is known")
	}
}

func TestTheCopyInTheHome(t *testing.T) {
	home := t.TempDir()
	c := Open(home)
	row := "mine\tmodel-x\t1000\t\t100\tn\t\tn\t\t\t\t\t2026-01-01\n"
	if err := os.WriteFile(File(home), []byte(header+"\n"+row), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, ok := c.Find("", "model-x"); !ok || m.Window() != 1000 {
		t.Errorf("%+v %v", m, ok) // read at the first look-up, not before
	}
	if err := os.WriteFile(File(home), []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := Open(home)
	if _, ok := broken.Find("", "gpt-5"); !ok || broken.Err() == nil {
		t.Errorf("a broken copy: found %v, error %v", ok, broken.Err())
	}
}

func TestCheckNamesTheLine(t *testing.T) {
	for _, bad := range []string{"a\tb\n", "a\tb\tmany\t\t\tn\t\tn\t\t\t\t\t\n", "\tb\t1\t\t\tn\t\tn\t\t\t\t\t\n", "a\tb\t1\t\t\tn\t\tn\t-1\t1\t\t\t\n"} {
		err := Check("# x\n" + header + "\n" + bad)
		if err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFamilies(t *testing.T) {
	for id, want := range map[string]string{
		"gpt-5.3-codex": "gpt-5", "openai/gpt-5": "gpt-5", "codex-mini-latest": "gpt-5", "gpt-4.1": "gpt", "gpt-4o": "gpt", "o3": "gpt",
		"openai/gpt-oss-120b": "gpt-oss", "claude-opus-4-8": "claude", "us.anthropic.claude-sonnet-4": "claude",
		"Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8": "qwen", "moonshotai/Kimi-K2.6": "kimi", "zai-org/GLM-5": "glm",
		"MiniMax-M3": "minimax", "devstral-2512": "mistral", "grok-4.3": "grok", "deepseek-chat": "deepseek", "gemini-3-pro-preview": "gemini",
		"mock-model": "other", "": "other",
	} {
		f := FamilyOf(id)
		if f.Name != want {
			t.Errorf("%s is %s, want %s", id, f.Name, want)
		}
		if (f.Edit == EditPatch) != (f.Name == "gpt-5" || strings.HasPrefix(id, "gpt-4.1") || id == "o3") || f.Shell == "" {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	c := Open("")
	for b.Loop() {
		c.Find("anthropic", "claude-opus-4-1-20250805")
	}
}
