package exportcmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// sample is a conversation in which everything tries to be something else.
func sample() conversation {
	items := []*transcript.Item{
		{Kind: transcript.User, Turn: 1, Status: transcript.Done, Text: "first line\n\n# no heading <script>alert(1)</script>"},
		{Kind: transcript.Message, Turn: 1, Status: transcript.Interrupted, Text: "I *begin*\x1b]0;owned\a"},
		{Kind: transcript.Call, Turn: 1, Status: transcript.Failed, Tool: "exec_command", Command: []string{"bash", "-lc", "make"}, Output: "```\nnot the end\n", ExitCode: 2},
		{Kind: transcript.Call, Turn: 1, Status: transcript.Done, Changes: []transcript.Change{{Path: "/w/a.go", Kind: "add", Diff: "@@ -0,0 +1 @@\n+x\n"}}},
		{Kind: transcript.Call, Turn: 1, Status: transcript.Done, Tool: "update_plan", Arguments: "{}"},
		{Kind: transcript.Plan, Turn: 1, Status: transcript.Done, Plan: []p.PlanStep{{Step: "one", Status: "completed"}, {Step: "two", Status: "pending"}}},
		{Kind: transcript.End, Turn: 1, Status: transcript.Done, Text: "interrupted after 2 s"},
		{Kind: transcript.Notice, Status: transcript.Done, Text: "turn 1 was undone"},
		{Kind: transcript.User, Turn: 2, Status: transcript.Done, Text: "again"},
		{Kind: transcript.Call, Turn: 2, Status: transcript.Open, Tool: "exec_command", Command: []string{"sleep", "9"}, Output: "still here"},
	}
	return conversation{"01a1", &transcript.Transcript{Items: items, Turn: 2, Title: "A <title>", Settings: p.Settings{Cwd: "/w", Model: "demo"}}, nil}
}

func written(t *testing.T, ending string) string {
	t.Helper()
	var b strings.Builder
	if err := formats[ending](&b, sample()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	const want = "# A <title>\n\n- conversation: 01a1\n- directory: /w\n- model: demo\n\n## Turn 1\n\n" +
		"> first line\n>\n> # no heading <script>alert(1)</script>\n\nI *begin*\n\n*partial*\n\n" +
		"````console\n$ make\n```\nnot the end\n````\n\n*exit code 2*\n\nadd `a.go`\n\n```diff\n@@ -0,0 +1 @@\n+x\n```\n\n- [x] one\n- [ ] two\n\n" +
		"*interrupted after 2 s*\n\n*turn 1 was undone*\n\n## Turn 2\n\n> again\n\n```console\n$ sleep 9\nstill here\n```\n\n*not finished*\n"
	if got := written(t, ".md"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHTML(t *testing.T) {
	got := written(t, ".html")
	for _, part := range []string{"<title>A &lt;title&gt;</title>", "&lt;script&gt;", "<em>begin</em>", "not the end", "still here", "<h2>Turn 2</h2>", "not finished"} {
		if !strings.Contains(got, part) {
			t.Errorf("it does not have %q", part)
		}
	}
	for _, part := range []string{"<script", "\x1b", "<button", "Turn 0"} {
		if strings.Contains(got, part) {
			t.Errorf("it has %q", part)
		}
	}
}

func TestJSON(t *testing.T) {
	var d document
	if err := json.Unmarshal([]byte(written(t, ".json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Items) != 9 || d.Turns != 2 || *d.Items[2].ExitCode != 2 || d.Items[8].ExitCode != nil || d.Items[3].Changes[0].Path != "/w/a.go" {
		t.Errorf("%+v", d)
	}
}

func TestFormatOf(t *testing.T) {
	for file, ok := range map[string]bool{"a.md": true, "A.HTML": true, "x/a.json": true, "a.txt": false, "a": false, "": false, ".md": true} {
		if _, err := formatOf(file); (err == nil) != ok {
			t.Errorf("%q: %v", file, err)
		}
	}
}
