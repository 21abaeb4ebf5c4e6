package foreign_test

import (
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// Whatever a file holds, reading it ends, and what was read makes a valid conversation.
func FuzzRead(f *testing.F) {
	names := map[foreign.Agent]string{
		foreign.Codex:  "sessions/2026/11/01/rollout-2026-11-01T10-00-00-0199a0c2-aaaa-7bbb-8ccc-111122223333.jsonl",
		foreign.Claude: "projects/-work-project/s.jsonl",
		foreign.Gemini: "tmp/project/chats/session-2026-11-01T10-00-g1.jsonl",
	}
	f.Add("codex", meta+"\n"+said(1, "user", "run it")+"\n"+codexCall(2, "c1")+"\n"+codexOutput(3, "c1", "out")+"\n"+`{"type":"compacted","payload":{"message":"sum"}}`)
	f.Add("claude", claude("user", "u1", "", userText("run"))+"\n"+claude("assistant", "a1", "u1", toolUse("m1", "t1", "sleep 9"))+"\n"+claude("user", "r1", "a1", toolResult("a1", "t1", "x")))
	f.Add("gemini", `{"sessionId":"g1"}`+"\n"+`{"id":"m1","type":"user","content":"hi"}`+"\n"+`{"id":"m2","type":"gemini","content":"ho","toolCalls":[{"id":"t","name":"x","status":"success","result":[]}]}`+"\n"+`{"$set":{"messages":[null]}}`)
	f.Fuzz(func(t *testing.T, agent, text string) {
		name, ok := names[foreign.Agent(agent)]
		if !ok || len(text) > 1<<20 {
			return
		}
		dir := t.TempDir()
		write(t, dir, filepath.FromSlash(name), text)
		h := &foreign.Home{Agent: foreign.Agent(agent), Dir: dir}
		list, err := h.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if c, err := h.Read(t.Context(), s); err == nil {
				judged(t, c)
			}
		}
	})
}
