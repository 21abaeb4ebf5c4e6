package protocol

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainText(t *testing.T) {
	image := Content{Type: ContentImage, ImageURL: "data:,", Text: "not text"}
	for _, tt := range []struct {
		content []Content
		want    string
	}{
		{nil, ""},
		{Text("one"), "one"},
		{Text(""), ""},
		{append(Text("one"), Text("two")...), "one\ntwo"},
		{[]Content{image, Text("one")[0], image, Text("two")[0], image}, "one\ntwo"},
		{[]Content{image}, ""},
	} {
		if got := PlainText(tt.content); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.content, got, tt.want)
		}
	}
}

func TestUsageAddAddsEveryCount(t *testing.T) {
	a, b := filled(t, Usage{}), filled(t, Usage{})
	sum := reflect.ValueOf(a.Add(b))
	for i := range sum.NumField() {
		if got, want := sum.Field(i).Int(), 2*reflect.ValueOf(a).Field(i).Int(); got != want {
			t.Errorf("%s is %d, want %d", sum.Type().Field(i).Name, got, want)
		}
	}
	if got := (Usage{}).Add(a); got != a {
		t.Errorf("nothing and %v is %v", a, got)
	}
}

func TestOverridesApply(t *testing.T) {
	before := filled(t, Settings{})
	if diff := cmp.Diff(before, Overrides{}.Apply(before)); diff != "" {
		t.Errorf("no overrides changed something:\n%s", diff)
	}

	// Each override, alone, changes the setting of its name and no other.
	for f := range reflect.TypeFor[Overrides]().Fields() {
		value := reflect.New(f.Type).Elem()
		(&filler{n: 1000}).fill(t, value)
		var over Overrides
		reflect.ValueOf(&over).Elem().FieldByIndex(f.Index).Set(value)

		want := before
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		reflect.ValueOf(&want).Elem().FieldByName(f.Name).Set(value)
		if diff := cmp.Diff(want, over.Apply(before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
}

func TestOverridesCanSetToNothing(t *testing.T) {
	var none string
	got := Overrides{Effort: &none, OutputSchema: json.RawMessage("null")}.Apply(filled(t, Settings{}))
	if got.Effort != "" || string(got.OutputSchema) != "null" {
		t.Errorf("effort is %q, schema %s", got.Effort, got.OutputSchema)
	}
}

func TestErrorIsItsMessage(t *testing.T) {
	var err error = &Error{Kind: ErrorAuth, Message: "no key", Hint: "set one"}
	if err.Error() != "no key" {
		t.Errorf("got %q", err)
	}
}
