package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/protocol"
)

// What services send that is not quite the wire, and what is made of it.
func TestQuirks(t *testing.T) {
	const begin = `{"type":"message_start","message":{"id":"m1"}}`
	badCall := []string{begin, start(`{"type":"tool_use","id":"1","name":"shell","input":{}}`), delta(`{"type":"input_json_delta","partial_json":"{\"a"}`), closed}
	for name, tt := range map[string]struct {
		events []string
		want   []string
		text   string // of the error
		retry  bool
	}{
		"a call that is not JSON":     {append(badCall, end("tool_use"), stop), []string{`call 1 shell {"a`}, "", false},
		"no message_stop":             {[]string{begin, start(`{"type":"text","text":"a"}`), closed, end("end_turn")}, []string{`text "a"`}, "", false},
		"a namespace before the name": {[]string{begin, start(`{"type":"tool_use","id":"1","name":"functions.shell","input":{}}`), closed, end("tool_use"), stop}, []string{`call 1 shell {}`}, "", false},
		"blocks without their ends": {
			[]string{
				begin, start(`{"type":"text","text":"a"}`), `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"1","name":"shell","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`, end("tool_use"), stop,
			}, []string{`text "a"`, `call 1 shell {"a":1}`}, "", false,
		},
		"blocks without their ends, all with the number 0": {
			[]string{begin, start(`{"type":"text","text":"a"}`), start(`{"type":"tool_use","id":"1","name":"shell","input":{}}`), end("tool_use"), stop}, []string{`text "a"`, `call 1 shell {}`}, "", false,
		},
		"no end of anything but the reason": {[]string{begin, start(`{"type":"text","text":"a"}`), end("end_turn")}, []string{`text "a"`}, "", false},
		"a pause":                           {[]string{begin, start(`{"type":"text","text":"a"}`), closed, end("pause_turn"), stop}, []string{`text "a"`}, "paused", true},
		"nothing at all":                    {[]string{begin, end("end_turn"), stop}, nil, "empty", true},
		"thinking only":                     {[]string{begin, start(`{"type":"thinking","thinking":"hm"}`), closed, end("end_turn"), stop}, []string{`think "hm"`}, "empty", true},
	} {
		t.Run(name, func(t *testing.T) {
			rec, _, err := answer(t, tt.events...)
			var e *protocol.Error
			if tt.text == "" && err != nil || tt.text != "" && (!errors.As(err, &e) || e.Retry != tt.retry || !strings.Contains(e.Message, tt.text)) {
				t.Errorf("error is %v", err)
			}
			if d := cmp.Diff(tt.want, rec.Summary()); d != "" {
				t.Errorf("items (-want +got):\n%s", d)
			}
			for _, b := range rec.Finished() {
				if m, ok := b.(*protocol.AssistantMessage); ok && m.Partial {
					t.Error("a whole message is marked as partial")
				}
			}
		})
	}
}

func TestAResponseInOnePiece(t *testing.T) {
	s := modeltest.New(t, modeltest.Status(http.StatusOK, `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"shell","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}`, "Content-Type", "application/json"))
	rec := &modeltest.Recorder{}
	end, err := anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), modeltest.Hello(), rec)
	if err != nil || end.Usage == nil || end.Usage.Total != 5 {
		t.Errorf("end %+v, error %v", end, err)
	}
	if d := cmp.Diff([]string{`think "hm"`, `text "a"`, `call c shell {"x":1}`}, rec.Summary()); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
}

func TestSecondTryWithoutAMember(t *testing.T) {
	for gone, refusal := range map[string]string{
		"thinking":      "thinking.budget_tokens: Extra inputs are not permitted",
		"tool_choice":   "tool_choice: Input should be a valid dictionary, none is not supported",
		"cache_control": "system.0.cache_control: Extra inputs are not permitted",
	} {
		p := modeltest.Hello()
		p.Model, p.Effort, p.NoCalls = "claude-sonnet-4-5", "medium", true
		s := modeltest.New(t, modeltest.Status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"`+refusal+`"}}`), modeltest.Respond(modeltest.Say("ok")))
		if _, err := anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
			t.Errorf("%s: %v", gone, err)
			continue
		}
		for _, r := range s.Requests() {
			if has := strings.Contains(string(r.Raw), `"`+gone+`"`); has != (r.Number == 1) {
				t.Errorf("request %d has %s: %v", r.Number, gone, has)
			}
		}
	}
}

// What a model can write is known of many: those get all of it, as far as the window has room.
func TestOutputLimitOfTheModel(t *testing.T) {
	for _, tt := range []struct {
		most, known, window int64
		want                float64
	}{{0, 128_000, 0, 128_000}, {0, 128_000, 1_000_000, 128_000}, {0, 64_000, 200_000, 50_000}, {0, 0, 0, 32_000}, {1000, 64_000, 0, 1000}} {
		p := modeltest.Hello()
		p.Window = tt.window
		s := modeltest.New(t, modeltest.Respond(modeltest.Say("ok")))
		o := anthropic.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport(), MaxTokens: tt.most, OutputLimit: func(string) int64 { return tt.known }}
		if _, err := anthropic.New(o).Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Wait(1).Body()["max_tokens"]; got != tt.want {
			t.Errorf("%+v: max_tokens is %v", tt, got)
		}
	}
}

// The service wants input and output to fit into the window together.
func TestOutputFitsIntoTheWindow(t *testing.T) {
	for window, want := range map[int64]float64{0: 32000, 200_000: 32000, 32_000: 8000, 8_000: 2000} {
		p := modeltest.Hello()
		p.Window = window
		s := modeltest.New(t, modeltest.Respond(modeltest.Say("ok")))
		if _, err := anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: s.Transport()}).Stream(t.Context(), p, &modeltest.Recorder{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Wait(1).Body()["max_tokens"]; got != want {
			t.Errorf("window %d: max_tokens %v, want %v", window, got, want)
		}
	}
}
