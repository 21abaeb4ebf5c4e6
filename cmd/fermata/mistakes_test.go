package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// mistake runs a command line in this process that is wrong, and returns what is said of it.
func mistake(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, cli.NewStreams(strings.NewReader(""), &out, &errs))
	if code != exitUsage || out.Len() > 0 {
		t.Errorf("%q: exit code %d, stdout %q", args, code, out.String())
	}
	return errs.String()
}

// Each kind of mistake with flags that the library knows is reported in our own words.
func TestMistakesWithFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"exec --modle x y", "unknown flag --modle; did you mean --model?"},
		{"exec --frobnicate x", "unknown flag --frobnicate"},
		{"show -x", "unknown flag -x"},
		{"show -fx", "unknown flag -x"},
		{"show -json", "unknown flag -json; did you mean --json?"},
		{"show -é", "unknown flag -é"},
		{"exec -m", "-m needs a value: -m MODEL"},
		{"exec --model", "--model needs a value: --model MODEL"},
		{"show -fm", "unknown flag -m"},
		{"list -n", "-n needs a value: -n N"},
		{"serve --idle", "--idle needs a value: --idle TIME"},
		{"list -n many", `--limit must be a number, not "many"`},
		{"list -n 99999999999999999999", "--limit: 99999999999999999999 is too large"},
		{"serve --idle soon", `--idle must be a time such as 90s or 10m, not "soon"`},
		{"list --json=perhaps", `--json takes no value but true or false, not "perhaps"`},
		{"list --=x", `"--=x" is not a flag`},
		{"list ---", `"---" is not a flag`},
	} {
		got, _, _ := strings.Cut(mistake(t, strings.Fields(c.args)...), "\n")
		if got != "fermata: "+c.want {
			t.Errorf("%s:\n%s\nwant\nfermata: %s", c.args, got, c.want)
		}
	}
}

// A wrong command below another one is reported, with what was probably meant.
func TestMistakesWithCommands(t *testing.T) {
	for args, want := range map[string]string{
		"exce x":              `unknown command "exce"; a prompt of several words needs quotes#did you mean exec? see fermata --help`,
		"lst":                 `unknown command "lst"#did you mean list? see fermata --help; to use it as a prompt: fermata -- lst`,
		"hi":                  `unknown command "hi"#see fermata --help; to use it as a prompt: fermata -- hi`,
		"exec resmue x":       `exec has no command "resmue"#did you mean fermata exec resume?`,
		"exec one two":        `exec: wrong number of arguments: 2; usage: fermata exec [PROMPT|-]#see fermata exec --help`,
		"mcp lst":             `mcp has no command "lst"#did you mean fermata mcp list?`,
		"mcp frobnicate":      `mcp has no command "frobnicate"#see fermata mcp --help`,
		"config shw":          `config has no command "shw"#did you mean fermata config show?`,
		"config frobnicate":   `config has no command "frobnicate"#see fermata config --help`,
		"permissions revok x": `permissions has no command "revok"#did you mean fermata permissions revoke?`,
		"trust /no/such":      `there is no directory /no/such`,
	} {
		want = "fermata: " + strings.Replace(want, "#", "\nhint: ", 1) + "\n"
		if got := mistake(t, strings.Fields(args)...); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
}

// foreign are phrases of the libraries that read the command line.
var foreign = []string{"shorthand", "flag needs", "invalid argument", "bad flag", "strconv", "parse", "invalid syntax", "accepts", "arg(s)", "required flag"}

// No flag of any command lets the words of the library through: not without its value, and not with a wrong one.
func TestNoFlagLetsForeignWordsThrough(t *testing.T) {
	t.Parallel()
	check := func(args []string) {
		got := mistake(t, args...)
		for _, text := range foreign {
			if strings.Contains(got, text) {
				t.Errorf("%q: %s", args, got)
			}
		}
	}
	eachCommand(newRoot(cli.Stdio()), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				check(append(path[:len(path):len(path)], "--"+f.Name))
			}
			if kind := f.Value.Type(); kind != "string" && kind != "stringArray" && kind != "file" { // those take any text
				check(append(path[:len(path):len(path)], "--"+f.Name+"=\x01"))
			}
		})
	})
}

// Shells complete the values of a flag that takes one of a few words.
func TestFlagsWithFewValuesAreCompleted(t *testing.T) {
	for args, want := range map[string]string{
		"exec --sandbox":            "read-only workspace-write danger-full-access",
		"review --color":            "always never auto",
		"app-server --max-sandbox":  "read-only workspace-write danger-full-access",
		"app-server --min-approval": "untrusted on-failure on-request never",
		"mcp add --approval":        "allow ask deny",
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append(append([]string{"__complete"}, strings.Fields(args)...), ""), cli.NewStreams(strings.NewReader(""), &out, &errs))
		if got, _, _ := strings.Cut(strings.ReplaceAll(out.String(), "\n", " "), " :"); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
