package tomledit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const file = `# my settings
model = "gpt-5"   # the good one

# who may do what
sandbox_mode = "read-only"
notify = [
  "notify-send", # desktop
  "fermata",
]

[tools]
view_image = true # keep

# the servers
[mcp_servers.docs]
command = "docs-server"
args = ["--stdio"]
env = { TOKEN = "t", "odd key" = "x" }

[mcp_servers.docs.limits]
# seconds
timeout = 5

[projects."/home/me/work"]
trust_level = "trusted"
`

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		path  string
		value any
		old   string // of the file
		new   string // instead of it
	}{
		{"a value keeps its comment", "model", "o3", `model = "gpt-5"   #`, `model = "o3"   #`},
		{"an array of several lines", "notify", []string{"x"}, "notify = [\n  \"notify-send\", # desktop\n  \"fermata\",\n]", `notify = ["x"]`},
		{"a new key above the tables", "approval_policy", "never", "  \"fermata\",\n]\n", "  \"fermata\",\n]\napproval_policy = \"never\"\n"},
		{"a new key of a table", "tools.web_search", false, "view_image = true # keep\n", "view_image = true # keep\nweb_search = false\n"},
		{"in an inline table", "mcp_servers.docs.env.TOKEN", "new", `TOKEN = "t"`, `TOKEN = "new"`},
		{"a new key of an inline table", "mcp_servers.docs.env.MORE", "m", `"odd key" = "x"`, `"odd key" = "x", MORE = "m"`},
		{"a name that needs quotes", "projects./home/me/work.trust_level", "untrusted", `trust_level = "trusted"`, `trust_level = "untrusted"`},
		{"a new table", "history.persistence", "none", "trust_level = \"trusted\"\n", "trust_level = \"trusted\"\n\n[history]\npersistence = \"none\"\n"},
		{"a new table below another", "mcp_servers.other", map[string]any{"command": "o", "env": map[string]any{"A": "1"}}, "trust_level = \"trusted\"\n", "trust_level = \"trusted\"\n\n[mcp_servers.other]\ncommand = \"o\"\n\n[mcp_servers.other.env]\nA = \"1\"\n"},
		{"a whole table that there is", "tools", map[string]any{"web_search": true}, "view_image = true # keep\n", "web_search = true\n"},
		{"a number", "mcp_servers.docs.limits.timeout", 7, "timeout = 5", "timeout = 7"},
		{"a table gives way to a value", "tools", "none", "\n[tools]\nview_image = true # keep\n", "tools = \"none\"\n"},
		{"nothing to do", "model", "gpt-5", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Set(file, strings.Split(tt.path, "."), tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Replace(file, tt.old, tt.new, 1), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, tt := range []struct{ name, path, old, new string }{
		{"a key", "model", "model = \"gpt-5\"   # the good one\n", ""},
		{"an array", "notify", "notify = [\n  \"notify-send\", # desktop\n  \"fermata\",\n]\n", ""},
		{"a table with its comment and what is in it", "mcp_servers.docs", "# the servers\n[mcp_servers.docs]\ncommand = \"docs-server\"\nargs = [\"--stdio\"]\nenv = { TOKEN = \"t\", \"odd key\" = \"x\" }\n\n[mcp_servers.docs.limits]\n# seconds\ntimeout = 5\n\n", ""},
		{"the last table", "projects", "\n[projects.\"/home/me/work\"]\ntrust_level = \"trusted\"\n", ""},
		{"first of an inline table", "mcp_servers.docs.env.TOKEN", `TOKEN = "t", `, ""},
		{"last of an inline table", "mcp_servers.docs.env.odd key", `, "odd key" = "x"`, ""},
		{"a table between others", "tools", "[tools]\nview_image = true # keep\n\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, was, err := Remove(file, strings.Split(tt.path, "."))
			if err != nil || !was {
				t.Fatalf("%t, %v", was, err)
			}
			if d := cmp.Diff(strings.Replace(file, tt.old, tt.new, 1), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for text, want := range map[string]string{
		"[a]\nx = 1\n\n[m.d]\nc = 1\n\n[m.d.t.w]\n\n":                "[a]\nx = 1\n",
		"[m.d]\nc = 1\n\n\n# of w\n[m.d.t.w]\n# one\ny = 1\n\n[b]\n": "[b]\n",
		"[m.d.t.w]\ny = 1\n[a]\n[m.d]\nc = 1\n":                      "[a]\n",
	} {
		if got, _, err := Remove(text, []string{"m", "d"}); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if got, was, err := Remove(file, []string{"no", "such"}); got != file || was || err != nil {
		t.Errorf("what is not there: %t, %v", was, err)
	}
}

func TestOtherTexts(t *testing.T) {
	for _, tt := range []struct{ name, text, path, want string }{
		{"nothing yet", "", "a", "a = 1\n"},
		{"nothing yet, in a table", "", "t.a", "[t]\na = 1\n"},
		{"only a comment", "# hello\n", "a", "# hello\n\na = 1\n"},
		{"no line break at the end", "b = 2", "a", "b = 2\na = 1\n"},
		{"only tables", "# about t\n[t]\nb = 2\n", "a", "a = 1\n\n# about t\n[t]\nb = 2\n"},
		{"dotted keys", "t.b = 2\nc = 3\n", "t.a", "t.b = 2\nt.a = 1\nc = 3\n"},
		{"dotted keys in a table", "[x]\nt.b = 2\nc = 3\n", "x.t.a", "[x]\nt.b = 2\nt.a = 1\nc = 3\n"},
		{"lines of Windows", "b = 2\r\n", "a", "b = 2\r\na = 1\r\n"},
		{"a byte order mark", "\ufeffb = 2\n", "a", "\ufeffb = 2\na = 1\n"},
		{"strings with brackets", "b = '''\n[x]\na = 5\n'''\n[t]\n", "a", "b = '''\n[x]\na = 5\n'''\na = 1\n[t]\n"},
		{"an empty table", "[t]\n# nothing\n", "t.a", "[t]\na = 1\n# nothing\n"},
		{"a key of a sub-table only", "[t.u]\nb = 2\n", "t.a", "[t.u]\nb = 2\n\n[t]\na = 1\n"},
		{"an empty inline table", "t = {}\n", "t.a", "t = { a = 1 }\n"},
		{"a quoted key", "\"a\" = 5\n", "a", "\"a\" = 1\n"},
		{"beside an array of tables", "[[l]]\na = 5\n", "a", "a = 1\n\n[[l]]\na = 5\n"},
	} {
		got, err := Set(tt.text, strings.Split(tt.path, "."), 1)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// What cannot be edited is said to be so, and nothing is returned.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ text, path, want string }{
		{"[[l]]\na = 5\n", "l.a", "by hand"},
		{"a = [1, 2]\n", "a.b", "by hand"},
		{"a = \n", "b", "not TOML"},
	} {
		if got, err := Set(tt.text, strings.Split(tt.path, "."), 1); err == nil || got != "" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %s: %q, %v", tt.text, tt.path, got, err)
		}
	}
	if _, err := Set("", []string{"a"}, struct{}{}); err == nil || errors.Is(err, ErrUnsupported) {
		t.Errorf("a value of no kind: %v", err)
	}
}

// Whatever the text and the path, the result means what was asked for (Set and
// Remove check that themselves), and setting and removing a new key gives back what
// was meant.
func FuzzEdit(f *testing.F) {
	f.Add(file, "mcp_servers.docs.env.X", "value")
	f.Add("t.b = 2\n[x]\n", "t.a", "v\"\n")
	f.Add("a = { b = { c = 1 } }", "a.b.d", "")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		parts := strings.Split(path, ".")
		before, err := decode(text)
		if err != nil {
			return
		}
		after, err := Set(text, parts, value)
		if err != nil {
			return
		}
		if get(before, parts) != nil {
			return
		}
		gone, was, err := Remove(after, parts)
		if err != nil || !was {
			t.Fatalf("remove what was set: %t, %v\n%s", was, err, after)
		}
		left, err := decode(gone)
		if d := cmp.Diff(prune(before), prune(left)); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	})
}
