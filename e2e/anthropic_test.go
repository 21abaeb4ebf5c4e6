package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/fermata-agent/fermata/internal/model"
	ours "github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// anthropicClient is a client of the SDK, which adds the /v1 itself.
func anthropicClient(s *modeltest.Server) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(strings.TrimSuffix(s.URL(), "/v1")), option.WithAPIKey(modeltest.Key), option.WithMaxRetries(0))
}

func newAnthropic(url string) model.Client {
	return ours.New(ours.Options{BaseURL: url, Key: modeltest.Key})
}

func TestMessagesSDKReadsWhatModeltestServes(t *testing.T) {
	s := modeltest.New(t, reply())
	client := anthropicClient(s)
	stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: "test-model", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	})
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Errorf("an event that does not fit: %v: %s", err, stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case anthropic.ThinkingBlock:
			blocks = append(blocks, fmt.Sprintf("thinking %q %t", b.Thinking, b.Signature != ""))
		case anthropic.TextBlock:
			blocks = append(blocks, fmt.Sprintf("text %q", b.Text))
		case anthropic.ToolUseBlock:
			blocks = append(blocks, b.ID+" "+b.Name+" "+string(b.Input))
		}
	}
	same(t, blocks, `thinking "hm" true`, `text "I look"`, "call_1 shell "+firstArgs, "call_2 shell "+secondArgs)
	if u := m.Usage; m.StopReason != "tool_use" || u.InputTokens != 100 || u.CacheReadInputTokens != 20 || u.OutputTokens != 30 {
		t.Errorf("end %s, usage %+v", m.StopReason, u)
	}
}

func TestMessagesSDKTakesWhatWeSend(t *testing.T) {
	again := modeltest.New(t)
	client := anthropicClient(again)
	for _, body := range bodies(t, newAnthropic) {
		var params anthropic.MessageNewParams
		understood(t, body, &params, func(o map[string]any) {
			if text, ok := o["content"].(string); ok && o["type"] == "tool_result" { // short for one block
				o["content"] = []any{map[string]any{"type": "text", "text": text}}
			}
		})
		again.Add(modeltest.Respond(modeltest.Say("ok")))
		stream := client.Messages.NewStreaming(t.Context(), params)
		for stream.Next() {
		}
		if err := stream.Err(); err != nil {
			t.Errorf("sent by the SDK: %v", err)
		}
	}
}
