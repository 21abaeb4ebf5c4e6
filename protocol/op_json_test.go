package protocol

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpsSurviveJSON(t *testing.T) {
	for _, row := range ops {
		want := OpJSON{filled(t, row.op)}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		var got OpJSON
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
	}
}

func TestOpsAreNamedAfterTheirTypes(t *testing.T) {
	for _, row := range ops {
		if want := snake(reflect.TypeOf(row.op).Name()); row.name != want {
			t.Errorf("%T is called %q, want %q", row.op, row.name, want)
		}
	}
}

func TestBadOps(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"dance","body":{}}`:    `unsupported op "dance"`,
		`{"kind":"approve","body":[]}`:  "decode op approve: json: cannot unmarshal array into Go value of type protocol.Approve",
		`{"body":{}}`:                   `unsupported op ""`,
		`{"kind":"interrupt","body":7}`: "decode op interrupt: json: cannot unmarshal number into Go value of type protocol.Interrupt",
	} {
		var o OpJSON
		if err := json.Unmarshal([]byte(text), &o); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if _, err := json.Marshal(OpJSON{}); err == nil {
		t.Error("nothing at all was encoded")
	}
	if text, err := json.Marshal(OpJSON{&Interrupt{Turn: 3}}); err != nil || string(text) != `{"kind":"interrupt","body":{"turn":3}}` {
		t.Errorf("a pointer: %s, %v", text, err)
	}
}
