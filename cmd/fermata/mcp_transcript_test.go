package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

var update = flag.Bool("update", false, "rewrite what the server says in the transcripts")

// TestMCPTranscripts plays the client's part of each transcript to the real server and
// compares the server's part, line by line. A transcript has:
//
//	-- model --    what the model answers, one request a line: say TEXT, call ID ARGV..., half TEXT, refuse TEXT
//	-- approval -- the approval policy; never if there is none
//	-- files --    NAME TEXT, one a line
//	-- wire --     > a line of the client, < one of the server, and what to wait for:
//	               until METHOD, until answer ID, until waiting (for an approval), until piece (of a message),
//	               until N turns (have ended)
//
// C is the conversation, L the subscription, /w the directory to work in. Numbers that differ
// from run to run are 0. The pieces of a text are joined, and left out if the whole follows. The
// answer to a message, which comes at any time between its events, stands directly behind it.
func TestMCPTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "mcp", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts, %v", err)
	}
	schema := sentBySchema(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playTranscript(t, file, schema)
		})
	}
}

// sentBySchema are the methods that the server says it sends.
func sentBySchema(t *testing.T) map[string]bool {
	t.Helper()
	var schema struct {
		Methods map[string]struct{ From string }
	}
	if err := json.Unmarshal([]byte(newPlace(t).must("mcp-server", "schema")), &schema); err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for name, m := range schema.Methods {
		sent[name] = m.From != "client"
	}
	return sent
}

func playTranscript(t *testing.T, file string, schema map[string]bool) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) string {
		i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 {
			return ""
		}
		return string(ar.Files[i].Data)
	}
	approval := strings.TrimSpace(part("approval"))
	if approval == "" {
		approval = "never"
	}
	play := func() string {
		s := newMCPSite(t, approval, modelPart(t, part("model"))...)
		for line := range strings.Lines(part("files")) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			s.file(name, text+"\n")
		}
		tr := &transcriber{mcpClient: s.start(), site: s, sent: schema}
		return tr.play(part("wire"))
	}
	got := play()
	// After "until N turns", which another process sees in the file, the end of the turn may be part of what a stream begins
	// with, or be sent right after it. Nothing else is left to chance.
	byFile := strings.Contains(part("wire"), " turns\n")
	for tries := 1; byFile && got != part("wire") && !*update && tries < 50; tries++ {
		got = play()
	}
	if !*update {
		if d := cmp.Diff(strings.Split(part("wire"), "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
		return
	}
	ar.Files[slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == "wire" })].Data = []byte(got)
	if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
		t.Fatal(err)
	}
}

// modelPart reads what the model is to answer.
func modelPart(t *testing.T, text string) []modeltest.Reply {
	t.Helper()
	var replies []modeltest.Reply
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "say":
			replies = append(replies, bareDone(rest))
		case "half":
			replies = append(replies, modeltest.Respond(modeltest.SayCut(rest), modeltest.Stall()))
		case "refuse":
			replies = append(replies, modeltest.Status(400, fmt.Sprintf(`{"error":{"message":%q}}`, rest)))
		case "call":
			id, command, _ := strings.Cut(rest, " ")
			var argv []string
			if err := json.Unmarshal([]byte(command), &argv); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			replies = append(replies, modeltest.Respond(shellCall(id, argv...)))
		default:
			t.Fatalf("the model cannot %q", line)
		}
	}
	return replies
}

// A transcriber plays a client and writes down what is said.
type transcriber struct {
	*mcpClient
	site *mcpSite
	sent map[string]bool // what the schema says is sent
	out  bytes.Buffer
	back []string // read, and not written down yet
	conv string
	sub  string
}

func (tr *transcriber) play(wire string) string {
	for line := range strings.Lines(wire) {
		line = strings.TrimSuffix(line, "\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "<": // to be said again
		case ">":
			fmt.Fprintln(&tr.out, line)
			tr.say(rest)
		case "until":
			tr.until(rest)
			fmt.Fprintln(&tr.out, line)
		default:
			fmt.Fprintln(&tr.out, line)
		}
	}
	tr.in.Close()
	for { // what is said in the end
		line, ok := tr.line()
		if !ok {
			break
		}
		tr.write(line)
	}
	if code := tr.code(); code != 0 {
		tr.t.Errorf("exit code %d\n%s", code, tr.err.String())
	}
	return joinPieces(tr.out.String())
}

var messageRequest = regexp.MustCompile(`^\{"id":([^,]+),.*("sendUserMessage"|"sendUserTurn"|"conversationSendMessage")`)

// say sends a line. If it is a message, its answer is written down before anything else.
func (tr *transcriber) say(line string) {
	r := strings.NewReplacer(`"C"`, `"`+tr.conv+`"`, `"L"`, `"`+tr.sub+`"`, `"/w`, `"`+tr.site.work)
	tr.send("%s", r.Replace(line))
	if m := messageRequest.FindStringSubmatch(line); m != nil {
		var before []string
		for {
			line, ok := tr.line()
			if !ok {
				tr.t.Fatalf("no answer to %s", m[1])
			}
			if id, method := lineKind(line); id == m[1] && method == "" {
				tr.write(line)
				break
			}
			before = append(before, line)
		}
		tr.back = append(before, tr.back...)
	}
}

// lineKind is what a line is about.
func lineKind(line string) (id, method string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal([]byte(line), &m) // a batch has neither
	return string(m.ID), m.Method
}

// line is the next line of the server.
func (tr *transcriber) line() (string, bool) {
	if len(tr.back) > 0 {
		line := tr.back[0]
		tr.back = tr.back[1:]
		return line, true
	}
	timer := time.NewTimer(untilDeadline(tr.t))
	defer timer.Stop()
	select {
	case line, ok := <-tr.lines:
		return line, ok
	case <-timer.C:
		tr.t.Fatalf("nothing more is said after\n%s", tr.out.String())
		return "", false
	}
}

func (tr *transcriber) until(what string) {
	tr.t.Helper()
	name, arg, _ := strings.Cut(what, " ")
	if name == "waiting" {
		eventually(tr.t, "the user is waited for", func() bool { return strings.Contains(tr.site.must("show", tr.conv), "waiting for approval") })
		return
	}
	if n, err := strconv.Atoi(name); err == nil {
		eventually(tr.t, what, func() bool {
			list := tr.site.conversations()
			return len(list) > 0 && int(list[0].Turns) == n && list[0].Ended != ""
		})
		return
	}
	for {
		line, ok := tr.line()
		if !ok {
			tr.t.Fatalf("the server has ended before %s\n%s%s", what, tr.out.String(), tr.err.String())
		}
		tr.write(line)
		if id, method := lineKind(line); name == "answer" && method == "" && id == arg || method == name || name == "piece" && piece.MatchString(line) {
			return
		}
	}
}

var (
	conversationName = regexp.MustCompile(`"(?:conversationId|conversation_id|session_id)":"([0-9a-f-]{36})"`)
	subscriptionName = regexp.MustCompile(`"subscriptionId":"([0-9a-f-]{36})"`)
	changing         = regexp.MustCompile(`("seq"|"nanos"|"secs"|\\"duration_seconds\\"):[0-9.]+`)
	timestamp        = regexp.MustCompile(`"timestamp":"[^"]+"`)
	versionName      = regexp.MustCompile(`("version":"|"userAgent":"fermata/|"path":")[^"]+"`)
	killedText       = regexp.MustCompile(`after [0-9.]+ s(: [a-z ]+\. It may have had effects\.)( Processes killed: [0-9]+\.)?`)
)

// write writes a line of the server down, without what differs from run to run.
func (tr *transcriber) write(line string) {
	tr.t.Helper()
	if _, method := lineKind(line); method != "" && !tr.sent[method] {
		tr.t.Errorf("the schema does not know that we send %s", method)
	}
	for name, re := range map[*string]*regexp.Regexp{&tr.conv: conversationName, &tr.sub: subscriptionName} {
		if m := re.FindStringSubmatch(line); m != nil && *name == "" {
			*name = m[1]
		}
	}
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		tr.t.Fatalf("%v: %s", err, line)
	}
	line = string(compact(v))
	line = changing.ReplaceAllString(line, "$1:0")
	line = timestamp.ReplaceAllString(line, `"timestamp":"T"`)
	line = versionName.ReplaceAllString(line, `$1…"`)
	line = killedText.ReplaceAllString(line, "after 0 s$1")
	if tr.conv != "" {
		line = strings.ReplaceAll(line, tr.conv, "C")
	}
	if tr.sub != "" {
		line = strings.ReplaceAll(line, tr.sub, "L")
	}
	line = strings.ReplaceAll(line, tr.site.realWork(), "/w")
	fmt.Fprintln(&tr.out, "< "+line)
}

// compact is JSON with sorted members and without escapes that nobody needs.
func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it was JSON
	return bytes.TrimSpace(b.Bytes())
}

// realWork is the directory to work in by its one name.
func (s *mcpSite) realWork() string {
	s.t.Helper()
	work, err := filepath.EvalSymlinks(s.work)
	if err != nil {
		s.t.Fatal(err)
	}
	return work
}

var (
	piece = regexp.MustCompile(`"delta":"((?:[^"\\]|\\.)*)"`)
	whole = regexp.MustCompile(`"(?:message|text)":"((?:[^"\\]|\\.)*)"`)
)

// joinPieces makes pieces of a text that follow each other one, and leaves them out if the
// whole text follows: how many there are is a matter of chance.
func joinPieces(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		n := len(out)
		switch {
		case n == 0 || !piece.MatchString(out[n-1]):
			out = append(out, line)
		case piece.MatchString(line) && piece.ReplaceAllString(line, "") == piece.ReplaceAllString(out[n-1], ""):
			before, after := piece.FindStringSubmatch(out[n-1])[1], piece.FindStringSubmatch(line)[1]
			out[n-1] = piece.ReplaceAllLiteralString(line, `"delta":"`+before+after+`"`)
		case whole.MatchString(line) && whole.FindStringSubmatch(line)[1] == piece.FindStringSubmatch(out[n-1])[1]:
			out[n-1] = line
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
