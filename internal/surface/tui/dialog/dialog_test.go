package dialog

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var noColour = theme.New(theme.Options{})

func command(script string) Approval {
	return Approval{Dir: "/home/me/project", Request: p.ApprovalRequested{
		Kind: p.ApproveCommand, Command: []string{"bash", "-lc", script}, Cwd: "/home/me/project",
		Reason: "it writes outside of the project",
	}}
}

func patch() Approval {
	var diff strings.Builder
	diff.WriteString("--- a/src/app.go\n+++ b/src/app.go\n@@ -1,40 +1,40 @@\n")
	for range 20 {
		diff.WriteString("-\told := 1\n+\tnew := 2 // with a longer comment behind it, so that it does not fit\n unchanged\n")
	}
	return Approval{
		Dir:     "/home/me/project",
		Request: p.ApprovalRequested{Kind: p.ApprovePatch, Cwd: "/home/me/project", Reason: "approval is always asked"},
		Changes: []transcript.Change{
			{Path: "/home/me/project/src/app.go", Kind: "update", Added: 20, Removed: 20},
			{Path: "/etc/hosts", Kind: "add", Added: 3},
		},
		Diff: diff.String(),
	}
}

func undo() Confirm {
	return Confirm{
		Title:   "Undo the last turn?",
		Body:    []string{"2 files are put back as they were.", "A command ran in this turn; what it did stays."},
		Diff:    "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-new\n+old\n",
		Choices: []Choice{{"undo", "u", "put the files back"}, {"keep", "k", "keep them"}},
		Default: 1,
	}
}

// press presses keys and returns the last action.
func press(m *Dialog, names ...string) Answer {
	var a Answer
	for _, n := range names {
		a, _ = m.Update(tuitest.Press(n))
	}
	return a
}

func TestApprovalKeys(t *testing.T) {
	done := func(d p.Decision, words string) Answer {
		return Answer{Used: true, Done: true, Decision: d, Message: words}
	}
	for _, tc := range []struct {
		keys string
		want Answer
	}{
		{"y", done(p.Approved, "")},
		{"Y", done(p.Approved, "")},
		{"a", done(p.ApprovedForSession, "")},
		{"s", done(p.Abort, "")},
		{"enter", done(p.Approved, "")},
		{"down enter", done(p.ApprovedForSession, "")},
		{"up enter", done(p.Abort, "")},
		{"tab tab tab tab enter", done(p.Approved, "")},
		{"n", used},
		{"n enter", done(p.Denied, "")},
		{"n u s e space g o enter", done(p.Denied, "use go")},
		{"n y a s enter", done(p.Denied, "yas")},
		{"n x esc y", done(p.Approved, "")},
		{"n x esc n y enter", done(p.Denied, "xy")},
		{"n x ctrl+j y enter", done(p.Denied, "x\ny")},
		{"n x y backspace left z enter", done(p.Denied, "zx")},
		{"esc", used},
		{"esc esc", done(p.Abort, "")},
		{"esc down esc", used},
		{"n esc esc", used}, // the first only left the text
		{"n esc esc esc", done(p.Abort, "")},
		{"x", used},
		{"ctrl+c", Answer{}},
		{"ctrl+l", Answer{}},
		{"n ctrl+c", Answer{}},
		{"n ctrl+d", Answer{}},
		{"pgdown", used},
	} {
		m := NewApproval(noColour, command("make"))
		m.View(80, 24)
		if diff := cmp.Diff(tc.want, press(m, strings.Fields(tc.keys)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.keys, diff)
		}
	}
}

func TestPasteNeverAnswers(t *testing.T) {
	m := NewApproval(noColour, command("make"))
	if a, _ := m.Update(tea.PasteMsg{Content: "y"}); a != used {
		t.Errorf("a paste led to %v", a)
	}
	press(m, "n")
	m.Update(tea.PasteMsg{Content: "use\x1b[31m make"})
	if a := press(m, "enter"); a.Message != "use make" {
		t.Errorf("message is %q", a.Message)
	}
}

func TestConfirmKeys(t *testing.T) {
	for _, tc := range []struct {
		keys string
		want Answer
	}{
		{"u", Answer{Used: true, Done: true, Choice: "undo"}},
		{"k", Answer{Used: true, Done: true, Choice: "keep"}}, // although k scrolls elsewhere
		{"enter", Answer{Used: true, Done: true, Choice: "keep"}},
		{"up enter", Answer{Used: true, Done: true, Choice: "undo"}},
		{"esc", Answer{Used: true, Done: true}},
		{"y", used},
		{"ctrl+c", Answer{}},
	} {
		if diff := cmp.Diff(tc.want, press(NewConfirm(noColour, undo()), strings.Fields(tc.keys)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.keys, diff)
		}
	}
	if a := press(NewConfirm(noColour, Confirm{Title: "Well"}), "enter"); !a.Done {
		t.Error("a question without choices cannot be left")
	}
}

func TestGuardLeavesKeysToWhoeverIsTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewApproval(noColour, command("make"))
		var timers []tea.Cmd
		timers = append(timers, m.Guard(300*time.Millisecond))
		for range 3 {
			a, cmd := m.Update(tuitest.Press("y"))
			if a != (Answer{}) {
				t.Fatalf("a guarded key led to %v", a)
			}
			timers = append(timers, cmd)
		}
		for _, cmd := range timers[:3] { // those of earlier keys do not end it
			m.Update(cmd())
			if a := m.guard.on; !a {
				t.Fatal("the guard ended before the pause")
			}
		}
		m.Update(timers[3]())
		if a := press(m, "y", "enter"); a.Decision != p.Approved {
			t.Errorf("after the pause the key led to %v", a)
		}
	})
}

// guarded returns the dialog of an approval that listens, with a guard.
func guarded() *Dialog {
	a := command("make")
	a.Offer = "don't ask again"
	m := NewApproval(noColour, a)
	m.Update(m.Guard(300 * time.Millisecond)())
	return m
}

// Whoever begins a sentence in front of an open dialog does not answer it with the letters of a
// word, and finds all of them in the draft.
func TestSentenceNeverAnswers(t *testing.T) {
	for _, sentence := range []string{"i t y a enter", "y e s enter", "a y", "n o t", "s t o p enter", "p y", "y y y", "Y e", "y space i", "y backspace", "y left"} {
		synctest.Test(t, func(t *testing.T) {
			m := guarded()
			m.View(80, 24)
			var timers []tea.Cmd
			draft, keys := "", strings.Fields(sentence)
			for _, key := range keys {
				k := tuitest.Press(key)
				a, cmd := m.Update(k)
				timers = append(timers, cmd)
				draft += a.First.Text
				if !a.Used {
					draft += k.Text
				}
				a.Used, a.First = false, tea.KeyPressMsg{}
				if a != (Answer{}) {
					t.Fatalf("%q: %s led to %v", sentence, key, a)
				}
			}
			want := ""
			for _, key := range keys {
				want += tuitest.Press(key).Text
			}
			if draft != want {
				t.Errorf("the draft is %q, want %q", draft, want)
			}
			for _, cmd := range timers {
				if a, _ := m.Update(cmd()); a != used {
					t.Errorf("%q: the pause led to %v", sentence, a)
				}
			}
			if m.list.At != 0 {
				t.Errorf("%q: Enter would take choice %d", sentence, m.list.At)
			}
			if a := press(m, "enter"); a.Decision != p.Approved {
				t.Errorf("after the pause Enter led to %v", a)
			}
		})
	}
}

// A single letter answers after a pause, or at once with Enter. Esc takes it back.
func TestLetterAnswersAfterAPause(t *testing.T) {
	for _, tc := range []struct {
		letter string
		want   Answer
	}{
		{"y", Answer{Used: true, Done: true, Decision: p.Approved}},
		{"Y", Answer{Used: true, Done: true, Decision: p.Approved}},
		{"a", Answer{Used: true, Done: true, Decision: p.ApprovedForSession}},
		{"p", Answer{Used: true, Done: true, Decision: p.Approved, Always: true}},
		{"s", Answer{Used: true, Done: true, Decision: p.Abort}},
		{"n", used},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := guarded()
			a, cmd := m.Update(tuitest.Press(tc.letter))
			if a != used {
				t.Fatalf("%s led to %v before the pause", tc.letter, a)
			}
			if a, _ = m.Update(cmd()); a != tc.want || m.writing != (tc.letter == "n") {
				t.Errorf("%s led to %v, want %v", tc.letter, a, tc.want)
			}

			want := tc.want
			if tc.letter == "n" {
				want = Answer{Used: true, Done: true, Decision: p.Denied}
			}
			if a := press(guarded(), tc.letter, "enter"); a != want {
				t.Errorf("%s and Enter led to %v, want %v", tc.letter, a, want)
			}

			m = guarded()
			_, cmd = m.Update(tuitest.Press(tc.letter))
			press(m, "esc")
			if a, _ := m.Update(cmd()); a != used || m.list.At != 0 || m.writing {
				t.Errorf("%s and Esc led to %v", tc.letter, a)
			}
		})
	}
}

// A paste after a letter is a text, too.
func TestPasteAfterALetter(t *testing.T) {
	m := guarded()
	press(m, "a")
	if a, _ := m.Update(tea.PasteMsg{Content: " test"}); a.Used || a.Done || a.First.Text != "a" {
		t.Errorf("the paste led to %v", a)
	}
}

func TestGuardOfAnotherDialog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewApproval(noColour, command("make")), NewApproval(noColour, command("make"))
		cmd := a.Guard(time.Second)
		b.Guard(time.Second)
		if act, _ := b.Update(cmd()); act.Used || !b.guard.on {
			t.Error("the timer of another dialog was taken")
		}
	})
}

func TestScrolling(t *testing.T) {
	m := NewApproval(noColour, patch())
	see := func() string {
		lines, _ := m.View(60, 16)
		tuitest.CheckWidth(t, lines, 60)
		return lines[len(lines)-1]
	}
	see()
	for _, step := range []struct{ key, want string }{
		{"pgdown", "7–12 of"},
		{"j", "8–13 of"},
		{"k", "7–12 of"},
		{"pgup", "1–6 of"},
		{"k", "1–6 of"},
		{"end", "of"},
		{"home", "1–6 of"},
	} {
		press(m, step.key)
		if got := see(); !strings.Contains(got, step.want) {
			t.Errorf("after %s the edge is %q, want %q", step.key, got, step.want)
		}
	}
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if got := see(); !strings.Contains(got, "4–9 of") {
		t.Errorf("after the wheel the edge is %q", got)
	}
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if a, _ := m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelLeft}); a.Used {
		t.Error("a sideways wheel was used")
	}
	press(m, "end")
	lines, _ := m.View(60, 200)
	if !strings.Contains(strings.Join(lines, "\n"), "A /etc/hosts") {
		t.Error("with enough room the beginning is not seen")
	}
}

func TestCommandIsShownAsItIs(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		want string
	}{
		{[]string{"bash", "-lc", "ls -l"}, "$ ls -l"},
		{[]string{"/bin/sh", "-c", "ls -l"}, "$ ls -l"},
		{[]string{"python3", "-c", "print(1)"}, "$ python3 -c 'print(1)'"},
		{[]string{"rm", "-rf", "a b"}, "$ rm -rf 'a b'"},
		{[]string{"bash", "-lc", "echo safe\rrm -rf /"}, "safe␍rm -rf /"},
		{[]string{"bash", "-lc", "echo \x1b[8mhidden"}, "echo ␛[8mhidden"},
		{[]string{"bash", "-lc", "echo \u202etxt.exe"}, "echo \uFFFDtxt.exe"},
		{[]string{"bash", "-lc", "one\ntwo"}, "$ one"},
	} {
		m := NewApproval(noColour, Approval{Request: p.ApprovalRequested{Command: tc.argv}})
		lines, _ := m.View(80, 24)
		got := ansi.Strip(strings.Join(lines, "\n"))
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: %q is missing in\n%s", tc.argv, tc.want, got)
		}
	}
	long := strings.Repeat("echo one && ", 200) + "the-end"
	m := NewApproval(noColour, command(long))
	m.View(40, 10)
	press(m, "end")
	lines, _ := m.View(40, 10)
	if !strings.Contains(strings.Join(lines, "\n"), "the-end") {
		t.Error("the end of a long command cannot be reached")
	}
}
