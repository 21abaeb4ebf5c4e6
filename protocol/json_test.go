package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// someTime has nothing that JSON would drop.
var someTime = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

func TestEveryBodySurvivesJSON(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for name, body := range map[string]Body{"full": filled(t, k.make()), "empty": k.make()} {
				data, err := json.Marshal(body)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got, err := DecodeBody(Kind(body), data)
				if err != nil {
					t.Fatalf("%s: decode %s: %v", name, data, err)
				}
				if diff := cmp.Diff(body, got); diff != "" {
					t.Errorf("%s: read back differs (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestEveryEventSurvivesJSON(t *testing.T) {
	for _, k := range kinds {
		for _, want := range []Event{
			{Seq: 7, Time: someTime, Turn: 3, Body: filled(t, k.make()), Unsaved: true},
			{Body: filled(t, k.make())},
		} {
			data, err := json.Marshal(want)
			if err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			var got Event
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatalf("%s: decode %s: %v", k.name, data, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: read back differs (-want +got):\n%s", k.name, diff)
			}
		}
	}
}

func TestEventJSONForm(t *testing.T) {
	for _, tt := range []struct {
		event Event
		want  string
	}{
		{
			Event{Seq: 7, Time: someTime, Turn: 3, Body: &ModelRequested{Response: 2}},
			`{"seq":7,"time":"2026-03-04T05:06:07.89Z","turn":3,"kind":"model_requested","body":{"response":2}}`,
		},
		{
			Event{Turn: 1, Body: &Delta{Item: ItemID{1, 2, 3}, Kind: DeltaMessage, Offset: 4, Text: "hi"}},
			`{"turn":1,"kind":"delta","body":{"item":"1.2.3","kind":"message","offset":4,"text":"hi"}}`,
		},
		{
			Event{Seq: 9, Time: someTime, Body: &Renamed{Title: "x"}, Unsaved: true},
			`{"seq":9,"time":"2026-03-04T05:06:07.89Z","kind":"renamed","body":{"title":"x"},"unsaved":true}`,
		},
		{
			Event{Seq: 1, Body: &AssistantMessage{Item: ItemID{1, 1, 0}, Text: "whole"}},
			`{"seq":1,"kind":"assistant_message","body":{"item":"1.1.0","text":"whole"}}`,
		},
	} {
		got, err := json.Marshal(tt.event)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestUnknownKindIsKeptAndPassedOn(t *testing.T) {
	for _, line := range []string{
		`{"seq":4,"turn":2,"kind":"from_the_future","body":{"deep":[1,{"x":null}],"n":1.50}}`,
		`{"seq":4,"kind":"from_the_future","body":"text"}`,
		`{"seq":4,"kind":"from_the_future","body":null}`,
	} {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(*Unknown); !ok {
			t.Errorf("body is a %T", e.Body)
		}
		if got := Kind(e.Body); got != "from_the_future" {
			t.Errorf("kind is %q", got)
		}
		got, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != line {
			t.Errorf("passed on as %s\nwas          %s", got, line)
		}
	}
}

func TestUnknownKindWithoutBody(t *testing.T) {
	var e Event
	if err := json.Unmarshal([]byte(`{"seq":4,"kind":"from_the_future"}`), &e); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(e)
	if err != nil {
		t.Fatalf("an event without a body cannot be passed on: %v", err)
	}
	if want := `{"seq":4,"kind":"from_the_future","body":null}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnknownKeepsItsOwnBytes(t *testing.T) {
	data := []byte(`{"a":1}`)
	b, err := DecodeBody("from_the_future", data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data) // the reader's buffer is used again
	if got := string(b.(*Unknown).JSON); got != `{"a":1}` {
		t.Errorf("kept %q", got)
	}
}

func TestDecodeErrorsNameTheKind(t *testing.T) {
	for _, tt := range []struct{ kind, data string }{
		{"tool_call", `{"call":"x"}`},
		{"tool_call", `{"call":7}`},
		{"model_requested", `{"response":"two"}`},
		{"notice", `{`},
		{"notice", ``},
	} {
		b, err := DecodeBody(tt.kind, []byte(tt.data))
		if err == nil {
			t.Errorf("%s %s: decoded as %#v", tt.kind, tt.data, b)
			continue
		}
		if !strings.Contains(err.Error(), tt.kind) {
			t.Errorf("%s %s: the error does not name the kind: %v", tt.kind, tt.data, err)
		}
	}
	for _, bad := range []string{`{`, `[]`, `{"seq":-1,"kind":"notice","body":{}}`, `{"kind":"notice","body":{"text":1}}`} {
		var e Event
		if err := json.Unmarshal([]byte(bad), &e); err == nil {
			t.Errorf("%s: decoded as %#v", bad, e)
		}
	}
}

func TestEveryOpSurvivesJSON(t *testing.T) {
	for _, op := range allOps() {
		want := filled(t, op)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("%T: %v", op, err)
		}
		got := reflect.New(reflect.TypeOf(op))
		if err := json.Unmarshal(data, got.Interface()); err != nil {
			t.Fatalf("%T: decode %s: %v", op, data, err)
		}
		if diff := cmp.Diff(want, got.Elem().Interface()); diff != "" {
			t.Errorf("%T: read back differs (-want +got):\n%s", op, diff)
		}
	}
}

func TestReceiptSurvivesJSON(t *testing.T) {
	want := filled(t, Receipt{})
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Receipt
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzEventJSON(f *testing.F) {
	for _, k := range kinds {
		data, err := json.Marshal(Event{Seq: 1, Time: someTime, Turn: 2, Body: filled(f, k.make())})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"kind":"new","body":[1,2]}`))
	f.Add([]byte(`{"kind":"new"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Event
		if json.Unmarshal(data, &e) != nil {
			return
		}
		once, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		var again Event
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%s was written and cannot be read: %v", once, err)
		}
		twice, err := json.Marshal(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("written as %s, then as %s (%v)", once, twice, err)
		}
	})
}

func BenchmarkEventJSON(b *testing.B) {
	e := Event{Seq: 1, Time: someTime, Turn: 2, Body: filled(b, new(ToolOutput))}
	for b.Loop() {
		data, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		var back Event
		if err := json.Unmarshal(data, &back); err != nil {
			b.Fatal(err)
		}
	}
}
