package e2e

import (
	"fmt"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	ours "github.com/fermata-agent/fermata/internal/model/responses"
)

func openaiClient(s *modeltest.Server) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL()), option.WithAPIKey(modeltest.Key), option.WithMaxRetries(0))
}

func newResponses(url string) model.Client {
	return ours.New(ours.Options{BaseURL: url, Key: modeltest.Key})
}

func newChat(url string) model.Client {
	return chat.New(chat.Options{BaseURL: url, Key: modeltest.Key})
}

func TestResponsesSDKReadsWhatModeltestServes(t *testing.T) {
	s := modeltest.New(t, reply())
	client := openaiClient(s)
	stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "test-model", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	})
	var deltas string
	var done []string
	var last responses.Response
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			deltas += e.Delta
		case responses.ResponseOutputItemDoneEvent:
			done = append(done, described(e.Item))
		case responses.ResponseCompletedEvent:
			last = e.Response
		case nil:
			t.Errorf("an event that the SDK does not know: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if deltas != "I look" {
		t.Errorf("deltas %q", deltas)
	}
	same(t, done, `reasoning "hm"`, `message "I look"`, "call_1 shell "+firstArgs, "call_2 shell "+secondArgs)
	if u := last.Usage; last.Status != "completed" || u.InputTokens != 120 || u.InputTokensDetails.CachedTokens != 20 || u.OutputTokens != 30 || u.TotalTokens != 150 {
		t.Errorf("end %q, usage %+v", last.Status, u)
	}
}

func described(it responses.ResponseOutputItemUnion) string {
	switch v := it.AsAny().(type) {
	case responses.ResponseReasoningItem:
		return fmt.Sprintf("reasoning %q", v.Summary[0].Text)
	case responses.ResponseOutputMessage:
		return fmt.Sprintf("message %q", v.Content[0].Text)
	case responses.ResponseFunctionToolCall:
		return v.CallID + " " + v.Name + " " + v.Arguments
	}
	return it.RawJSON()
}

func TestResponsesSDKTakesWhatWeSend(t *testing.T) {
	again := modeltest.New(t)
	client := openaiClient(again)
	for _, body := range bodies(t, newResponses) {
		var params responses.ResponseNewParams
		understood(t, body, &params, func(o map[string]any) {
			if o["type"] == "message" && o["role"] == "assistant" {
				// The SDK takes it for its short form of a message, which has neither. The whole form asks for both.
				if o["id"] == nil || o["status"] != "completed" {
					t.Errorf("a message of the model without id or status: %v", o)
				}
				delete(o, "id")
				delete(o, "status")
			}
		})
		again.Add(modeltest.Respond(modeltest.Say("ok")))
		stream := client.Responses.NewStreaming(t.Context(), params)
		for stream.Next() {
		}
		if err := stream.Err(); err != nil {
			t.Errorf("sent by the SDK: %v", err)
		}
	}
}

func TestChatSDKReadsWhatModeltestServes(t *testing.T) {
	s := modeltest.New(t, reply())
	client := openaiClient(s)
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "test-model", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Errorf("a chunk that does not fit: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	choice := acc.Choices[0]
	if choice.Message.Content != "I look" || choice.FinishReason != "tool_calls" {
		t.Errorf("%q, %s", choice.Message.Content, choice.FinishReason)
	}
	var calls []string
	for _, c := range choice.Message.ToolCalls {
		calls = append(calls, c.ID+" "+c.Function.Name+" "+c.Function.Arguments)
	}
	same(t, calls, "call_1 shell "+firstArgs, "call_2 shell "+secondArgs)
	if u := acc.Usage; u.PromptTokens != 120 || u.CompletionTokens != 30 || u.TotalTokens != 150 {
		t.Errorf("usage %+v", u)
	}
}

func TestChatSDKTakesWhatWeSend(t *testing.T) {
	again := modeltest.New(t)
	client := openaiClient(again)
	for _, body := range bodies(t, newChat) {
		var params openai.ChatCompletionNewParams
		understood(t, body, &params, func(o map[string]any) {
			delete(o, "reasoning_content") // sent back to servers that have it; the service does not
		})
		again.Add(modeltest.Respond(modeltest.Say("ok")))
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		for stream.Next() {
		}
		if err := stream.Err(); err != nil {
			t.Errorf("sent by the SDK: %v", err)
		}
	}
}
