package emit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

// kinds are the kinds of some events, whose form is checked on the way: the
// kind stands in both lines and the sequence numbers have no gap.
func kinds(t *testing.T, first int, events ...string) []string {
	t.Helper()
	var out []string
	for i, e := range events {
		head, data, ok := strings.Cut(e, "\ndata: ")
		var v struct {
			Type string
			Seq  int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil || !ok || !strings.HasSuffix(e, "\n\n") {
			t.Errorf("event %q: %v", e, err)
		}
		if head != "event: "+v.Type || v.Seq != first+i || !strings.HasPrefix(data, `{"type":"`) {
			t.Errorf("event %q: type %s, number %d, want %d", e, v.Type, v.Seq, first+i)
		}
		out = append(out, v.Type)
	}
	return out
}

func TestTheOrderOfEvents(t *testing.T) {
	e := &Encoder{Number: 7, Model: "m"}
	var all []string
	for _, part := range [][]string{
		e.Start(), e.Think([][]string{{"a"}, {"b", "c"}}), e.Say([]string{"x", "y"}, true),
		e.Calls([]Call{{ID: "1", Name: "f", Arguments: "{}"}, {Kind: protocol.CallCustom, ID: "2", Name: "g", Arguments: "in"}}, true), e.End(nil),
	} {
		all = append(all, part...)
	}
	want := `created in_progress
		output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done
		reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done
		output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done
		output_item.added output_item.added function_call_arguments.delta custom_tool_call_input.delta function_call_arguments.delta custom_tool_call_input.delta
		function_call_arguments.done output_item.done custom_tool_call_input.done output_item.done
		completed`
	got := kinds(t, 0, all...)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "response.")
	}
	if d := cmp.Diff(strings.Fields(want), got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestWhatIsNotWholeIsNotFinished(t *testing.T) {
	e := &Encoder{}
	e.Start()
	for _, k := range append(kinds(t, 2, e.Say([]string{"x"}, false)...), kinds(t, 5, e.Calls([]Call{{ID: "1"}}, false)...)...) {
		if strings.HasSuffix(k, ".done") {
			t.Errorf("event %s", k)
		}
	}
	if out := e.Response(nil)["output"].([]Object); len(out) != 0 {
		t.Errorf("output %v", out)
	}
}

func TestTheWholeResponse(t *testing.T) {
	e := &Encoder{Number: 3, Model: "m"}
	e.Start()
	e.Say([]string{"a", "b"}, true)
	e.Calls([]Call{{ID: "1", Name: "f", Arguments: "{}"}}, true)
	got := Marshal(e.Response(&protocol.Usage{Input: 5, Cached: 2, Output: 4, Reasoning: 1, Total: 9}))
	want := `{"created_at":0,"error":null,"id":"resp_3","incomplete_details":null,"model":"m","object":"response","output":[` +
		`{"content":[{"annotations":[],"logprobs":[],"text":"ab","type":"output_text"}],"id":"msg_3_0","role":"assistant","status":"completed","type":"message"},` +
		`{"arguments":"{}","call_id":"1","id":"fc_3_1","name":"f","status":"completed","type":"function_call"}],"status":"completed",` +
		`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":9}}`
	if got != want {
		t.Errorf("response\n%s\nwant\n%s", got, want)
	}
}

func TestOtherEndings(t *testing.T) {
	e := &Encoder{}
	for want, events := range map[string][]string{
		`"incomplete_details":{"reason":"why"}`: e.Incomplete("why", nil),
		`"error":{"code":"c","message":"<m>"}`:  e.Fail("c", "<m>"),
		`"code":"c","message":"m","param":null`: e.Error("c", "m"),
		": ping\n\n":                            {e.Ping()},
	} {
		if len(events) != 1 || !strings.Contains(events[0], want) {
			t.Errorf("no %s in %q", want, events)
		}
	}
}

func TestHalvesAreCutBetweenCharacters(t *testing.T) {
	for in, want := range map[string][2]string{"": {"", ""}, "a": {"", "a"}, "éé": {"é", "é"}, "abc": {"a", "bc"}} {
		if got := Halves(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
