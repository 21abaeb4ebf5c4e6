package form

import (
	"encoding/json"
	"strings"
	"testing"
)

var schema = json.RawMessage(`{"type":"object","properties":{
	"name":{"type":"string","title":"Your name"},
	"age":{"type":"integer","default":7},
	"score":{"type":"number"},
	"ok":{"type":"boolean"},
	"colour":{"type":"string","enum":["red","blue"]},
	"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}
},"required":["name"]}`)

func TestRead(t *testing.T) {
	fields := Fields(schema)
	for text, want := range map[string]string{
		`name=me`: `{"name":"me"}`,
		`name="a b" age=3 score=1.5 ok=yes colour=red tags=a,b`: `{"age":3,"colour":"red","name":"a b","ok":true,"score":1.5,"tags":["a","b"]}`,
		`{"anything":1}`:   `{"anything":1}`,
		`name=me age=`:     `{"name":"me"}`,
		``:                 "name is required",
		`age=3`:            "name is required",
		`me`:               "an answer has the form name= age=7",
		`name=me age=x`:    "age must be a whole number",
		`name=me ok=maybe`: "ok must be true or false",
		`name=me score=x`:  "score must be a number",
		`name=me colour=x`: "colour must be one of red, blue",
		`name=me tags=a,x`: "tags must be one of a, b",
		`name=me other=1`:  "other was not asked for",
		`name="me`:         "an answer has the form",
	} {
		got, err := Read(fields, text)
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if !strings.HasPrefix(string(got), want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	one := Fields(json.RawMessage(`{"properties":{"why":{"type":"string"}}}`))
	for _, text := range []string{"because it rains", "why=\"because it rains\""} {
		if got, err := Read(one, text); err != nil || string(got) != `{"why":"because it rains"}` {
			t.Errorf("%s, %v", got, err)
		}
	}
	if Complete(fields) || !Complete(one) || !Complete(nil) || Fields(nil) != nil {
		t.Error("what is complete is not known")
	}
}

func TestFieldsInWords(t *testing.T) {
	var lines []string
	for _, f := range Fields(schema) {
		lines = append(lines, f.String())
	}
	want := "name: Your name (required)\nage (integer; unless given 7)\ncolour (red, blue)\nok (boolean)\nscore (number)\ntags (a, b)"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`name="a b" age=3`)
	f.Add("=")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Read(Fields(schema), text)
		if err == nil && !json.Valid(got) {
			t.Errorf("%q", got)
		}
	})
}
