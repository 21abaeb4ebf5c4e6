package args

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var schema = &Schema{
	Tool: "run", Bare: "cmd", Example: `{"cmd":"ls"}`,
	Params: []Param{
		{Name: "cmd", Type: Line, Required: true, Description: "The command line.", Aliases: []string{"command"}},
		{Name: "argv", Type: Command, Description: "Or a list."},
		{Name: "work_dir", Type: String, Description: "Where."},
		{Name: "wait", Type: Number, Description: "How long."},
		{Name: "tty", Type: Boolean, Description: "On a terminal."},
		{Name: "steps", Type: Objects, Description: "Steps.", Item: json.RawMessage(`{"type":"object"}`)},
		{Name: "quiet", Type: Boolean, Hidden: true},
	},
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     map[string]any
		repairs  int
	}{
		{"valid", `{"cmd":"ls","wait":5,"tty":true}`, map[string]any{"cmd": "ls", "wait": 5.0, "tty": true}, 0},
		{"null is nothing", `{"cmd":"ls","wait":null}`, map[string]any{"cmd": "ls"}, 0},
		{"hidden", `{"cmd":"ls","quiet":true}`, map[string]any{"cmd": "ls", "quiet": true}, 0},
		{"alias", `{"command":"ls"}`, map[string]any{"cmd": "ls"}, 1},
		{"own name before alias", `{"command":"no","cmd":"ls"}`, map[string]any{"cmd": "ls"}, 1},
		{"spelled differently", `{"cmd":"ls","workDir":"/"}`, map[string]any{"cmd": "ls", "work_dir": "/"}, 1},
		{"unknown", `{"cmd":"ls","color":1}`, map[string]any{"cmd": "ls"}, 1},
		{"number as string", `{"cmd":"ls","wait":" 5 "}`, map[string]any{"cmd": "ls", "wait": 5.0}, 1},
		{"boolean as string", `{"cmd":"ls","tty":"True"}`, map[string]any{"cmd": "ls", "tty": true}, 1},
		{"boolean as number", `{"cmd":"ls","tty":0}`, map[string]any{"cmd": "ls", "tty": false}, 1},
		{"string as number", `{"cmd":"ls","work_dir":7}`, map[string]any{"cmd": "ls", "work_dir": "7"}, 1},
		{"list for a line", `{"cmd":["ls","-l"]}`, map[string]any{"cmd": []string{"ls", "-l"}}, 1},
		{"line for a list", `{"cmd":"x","argv":"ls -l"}`, map[string]any{"cmd": "x", "argv": "ls -l"}, 1},
		{"list in a string", `{"cmd":"x","argv":"[\"ls\",\"-l\"]"}`, map[string]any{"cmd": "x", "argv": []string{"ls", "-l"}}, 1},
		{"number in a list", `{"cmd":"x","argv":["sleep",5]}`, map[string]any{"cmd": "x", "argv": []string{"sleep", "5"}}, 1},
		{"trailing comma", `{"cmd":"ls",}`, map[string]any{"cmd": "ls"}, 1},
		{"trailing comma in a list", "{\"cmd\":[\"ls\",\n]}", map[string]any{"cmd": []string{"ls"}}, 2},
		{"line feed in a string", "{\"cmd\":\"echo a\n\techo b\"}", map[string]any{"cmd": "echo a\n\techo b"}, 1},
		{"unknown escape", `{"cmd":"grep '\d+\.' \$x"}`, map[string]any{"cmd": `grep '\d+\.' \$x`}, 1},
		{"escaped apostrophe", `{"cmd":"echo it\'s"}`, map[string]any{"cmd": "echo it's"}, 1},
		{"single quotes", `{'cmd': 'echo "a"', 'tty': True, 'wait': None}`, map[string]any{"cmd": `echo "a"`, "tty": true}, 1},
		{"names without quotes", `{cmd: "ls", wait: 1e3}`, map[string]any{"cmd": "ls", "wait": 1000.0}, 1},
		{"written as a string", `"{\"cmd\":\"ls\"}"`, map[string]any{"cmd": "ls"}, 1},
		{"written as a string twice", `"\"{\\\"cmd\\\":\\\"ls\\\"}\""`, map[string]any{"cmd": "ls"}, 2},
		{"fence", "```json\n{\"cmd\":\"ls\"}\n```", map[string]any{"cmd": "ls"}, 1},
		{"fence and comma", "```\n{\"cmd\":\"ls\",}\n```", map[string]any{"cmd": "ls"}, 1},
		{"prose", "Sure: {\"cmd\":\"ls\"} as you wish", map[string]any{"cmd": "ls"}, 1},
		{"byte order mark", "\uFEFF{\"cmd\":\"ls\"}", map[string]any{"cmd": "ls"}, 0},
		{"list of one object", `[{"cmd":"ls"}]`, map[string]any{"cmd": "ls"}, 1},
		{"bare list", `["ls","-l"]`, map[string]any{"cmd": []string{"ls", "-l"}}, 2},
		{"bare string", `"ls -l"`, map[string]any{"cmd": "ls -l"}, 1},
		{"bare text", `ls -l`, map[string]any{"cmd": "ls -l"}, 1},
		{"braces in a command", `{"cmd":"echo {a,b,}"}`, map[string]any{"cmd": "echo {a,b,}"}, 0},
		{"one object for a list", `{"cmd":"x","steps":{"a":"b"}}`, map[string]any{"cmd": "x", "steps": []map[string]json.RawMessage{{"a": []byte(`"b"`)}}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := schema.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, v.set); d != "" || len(v.Repairs) != tt.repairs {
				t.Errorf("%d repairs %q, want %d; values (-want +got):\n%s", len(v.Repairs), v.Repairs, tt.repairs, d)
			}
		})
	}
}

// What is ambiguous is not guessed: the model is told what is wrong, in words.
func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", ``, `the parameter "cmd" is missing`},
		{"empty", `{}`, `the parameter "cmd" is missing`},
		{"cut", `{"cmd":"rm -rf /tmp/x`, "the JSON ends too early"},
		{"cut after a value", `{"cmd":"rm -rf /tmp/x"`, "the JSON ends too early"},
		{"two objects", `{"cmd":"ls"}{"cmd":"pwd"}`, "more than one JSON value"},
		{"wrong type", `{"cmd":{"a":1}}`, `the parameter "cmd" must be a string`},
		{"not a number", `{"cmd":"ls","wait":"soon"}`, `the parameter "wait" must be a number`},
		{"infinite", `{"cmd":"ls","wait":"inf"}`, `the parameter "wait" must be a number`},
		{"not a boolean", `{"cmd":"ls","tty":"perhaps"}`, `the parameter "tty" must be a boolean`},
		{"not a list", `{"cmd":"ls","argv":{}}`, `the parameter "argv" must be a list of strings`},
		{"garbage", `{"cmd" "ls"}`, "invalid JSON near"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Parse(tt.in)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range []string{
				"failed to parse function arguments: ", tt.want, "run takes these parameters:\n- cmd (string, required): The command line.\n", "\nExample: " + `{"cmd":"ls"}`,
			} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
			for _, not := range []string{"Go ", "unmarshal", "struct", "quiet"} {
				if strings.Contains(err.Error(), not) {
					t.Errorf("%q contains %q", err, not)
				}
			}
		})
	}
}

func TestSchemaJSON(t *testing.T) {
	want := `{"type":"object","properties":{"cmd":{"type":"string","description":"The command line."},` +
		`"argv":{"type":"array","items":{"type":"string"},"description":"Or a list."},"work_dir":{"type":"string","description":"Where."},` +
		`"wait":{"type":"number","description":"How long."},"tty":{"type":"boolean","description":"On a terminal."},` +
		`"steps":{"type":"array","items":{"type":"object"},"description":"Steps."}},"required":["cmd"],"additionalProperties":false}`
	if got := string(schema.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if schema.Strict() {
		t.Error("a schema with optional parameters is strict")
	}
}

// Whatever is valid JSON is never changed, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"cmd":"ls"}`, `{'cmd':'it\'s'}`, "{\"a\":\"\n\"", `"\"{"`, `{"cmd":"\u00`, `[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := schema.Parse(text)
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		var line string
		if json.Unmarshal(object["cmd"], &line) == nil && err == nil && !strings.HasPrefix(strings.TrimSpace(line), `["`) && string(object["cmd"]) != "null" && v.set["cmd"] != line {
			t.Errorf("%q gives %v", text, v.set)
		}
	})
}
