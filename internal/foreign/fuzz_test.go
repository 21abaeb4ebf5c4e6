package foreign_test

import (
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// fuzz tries texts as a file of an agent: whatever it holds, reading it ends, and what was read makes a valid conversation.
func fuzz(f *testing.F, agent foreign.Agent, name string) {
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<20 {
			return
		}
		dir := t.TempDir()
		write(t, dir, filepath.FromSlash(name), text)
		h := &foreign.Home{Agent: agent, Dir: dir}
		list, err := h.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			c, err := h.Read(t.Context(), s)
			if err != nil {
				continue
			}
			judged(t, c)
			for _, branch := range c.Branches {
				if b, err := h.ReadBranch(t.Context(), s, branch); err == nil {
					judged(t, b)
				}
			}
		}
	})
}

func FuzzCodex(f *testing.F) {
	f.Add(meta + "\n" + said(1, "user", "run it") + "\n" + codexCall(2, "c1") + "\n" + codexOutput(3, "c1", "out") + "\n" + `{"type":"compacted","payload":{"message":"sum"}}`)
	fuzz(f, foreign.Codex, "sessions/2026/11/01/rollout-2026-11-01T10-00-00-0199a0c2-aaaa-7bbb-8ccc-111122223333.jsonl")
}

func FuzzClaude(f *testing.F) {
	f.Add(claude("user", "u1", "", userText("run")) + "\n" + claude("assistant", "a1", "u1", toolUse("m1", "t1", "sleep 9")) + "\n" + claude("user", "r1", "a1", toolResult("a1", "t1", "x")))
	f.Add(claude("user", "u1", "", userText("run")) + "\n" + claude("user", "u2", "u1", userText("left")) + "\n" + claude("user", "u3", "u1", userText("right")))
	fuzz(f, foreign.Claude, "projects/-work-project/s.jsonl")
}

func FuzzGemini(f *testing.F) {
	f.Add(`{"sessionId":"g1"}` + "\n" + `{"id":"m1","type":"user","content":"hi"}` + "\n" + `{"id":"m2","type":"gemini","content":"ho","toolCalls":[{"id":"t","name":"x","status":"success","result":[]}]}` + "\n" + `{"$set":{"messages":[null]}}`)
	f.Add(`{"sessionId":"g1"}` + "\n" + `{"id":"m1","type":"user","content":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}` + "\n" + `{"id":"m1","type":"error","content":"no"}` + "\n" + `{"$rewindTo":"m1"}`)
	fuzz(f, foreign.Gemini, "tmp/project/chats/session-2026-11-01T10-00-g1.jsonl")
}

// FuzzOpenCode tries the documents of opencode, which are the same in files and in its database.
func FuzzOpenCode(f *testing.F) {
	f.Add(`{"title":"t","time":{"created":1},"revert":{"messageID":"m2"}}`, `{"role":"user","time":{"created":2}}`, `{"type":"text","text":"\"run it\""}`,
		`{"role":"assistant","time":{"created":3},"error":{"name":"MessageAbortedError"},"tokens":{"input":1,"output":2}}`, `{"type":"tool","callID":"c","tool":"bash","state":{"status":"running","input":{}}}`)
	f.Add(`{}`, `{"role":"user"}`, `{"type":"file","mime":"image/png","url":"data:image/png;base64,eA=="}`, `{"role":"assistant","summary":true}`, `{"type":"text","text":"sum"}`)
	f.Fuzz(func(t *testing.T, session, first, firstPart, second, secondPart string) {
		dir := t.TempDir()
		write(t, dir, "storage/session/p/ses_1.json", session)
		write(t, dir, "storage/message/ses_1/m1.json", first)
		write(t, dir, "storage/part/m1/p1.json", firstPart)
		write(t, dir, "storage/message/ses_1/m2.json", second)
		write(t, dir, "storage/part/m2/p2.json", secondPart)
		write(t, dir, "storage/part/m2/p3.json", firstPart)
		h := &foreign.Home{Agent: foreign.OpenCode, Dir: dir, Scratch: t.TempDir()}
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
