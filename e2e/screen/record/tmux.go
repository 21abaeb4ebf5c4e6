package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// A tmux is a shell in a terminal of its own, which is recorded.
type tmux struct {
	ctx    context.Context
	socket string
	began  time.Time
	chunks []chunk // belongs to the reader until done is closed
	done   chan struct{}
}

// A chunk is what was written to the terminal at one time.
type chunk struct {
	at   time.Duration
	data []byte
}

// startTmux starts the shell in the project.
func startTmux(ctx context.Context, home string) (*tmux, error) {
	t := &tmux{ctx: ctx, socket: filepath.Join(home, "tmux"), began: time.Now(), done: make(chan struct{})}
	pipe := filepath.Join(home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, err
	}
	r, err := os.OpenFile(pipe, os.O_RDWR, 0) // also for writing, so that opening does not wait
	if err != nil {
		return nil, err
	}
	go t.read(r)
	for _, command := range [][]string{
		{
			"new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", filepath.Join(home, "hello"),
			"env", "-i", "HOME=" + home, "FERMATA_HOME=" + filepath.Join(home, "fermata"), "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH"),
			"PS1=$ ", "LANG=C.UTF-8", "TERM=screen-256color", "bash", "--norc", "--noprofile", "-i",
		},
		{"set", "-g", "status", "off"},
		{"set", "-g", "escape-time", "0"},
		{"pipe-pane", "-O", "cat > " + pipe},
		{"send-keys", "clear", "Enter"},
	} {
		if _, err := t.run(command...); err != nil {
			return nil, err
		}
	}
	return t, t.wait("$")()
}

// read keeps what is written. It ends when the pipe is closed.
func (t *tmux) read(pipe *os.File) {
	defer close(t.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := pipe.Read(buf)
		if n > 0 {
			t.chunks = append(t.chunks, chunk{time.Since(t.began), bytes.Clone(buf[:n])})
			if bytes.HasSuffix(t.chunks[len(t.chunks)-1].data, []byte(endMark)) {
				return
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

func (t *tmux) run(args ...string) (string, error) {
	cmd := exec.CommandContext(t.ctx, "tmux", append([]string{"-f", "/dev/null", "-S", t.socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

func (t *tmux) end() { _, _ = t.run("kill-server") }

// text is the screen.
func (t *tmux) text() string {
	out, _ := t.run("capture-pane", "-p") // nothing if it has ended
	return out
}

// styled is the screen with its colours.
func (t *tmux) styled() string {
	out, _ := t.run("capture-pane", "-p", "-e")
	return notForViewers.ReplaceAllString(out, "")
}

// wait waits for a text on the screen.
func (t *tmux) wait(text string) func() error {
	return func() error {
		for over := time.Now().Add(time.Minute); !strings.Contains(t.text(), text); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(over) || t.ctx.Err() != nil {
				return fmt.Errorf("%q does not appear", text)
			}
		}
		return nil
	}
}

func (t *tmux) pause(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

func (t *tmux) key(name string) func() error {
	return func() error {
		_, err := t.run("send-keys", name)
		return err
	}
}

// line types a line as a person does, and Enter.
func (t *tmux) line(text string) func() error {
	return func() error {
		time.Sleep(700 * time.Millisecond)
		for _, r := range text {
			key := strings.Replace(string(r), ";", `\;`, 1) // which ends a command of tmux
			if _, err := t.run("send-keys", "-l", key); err != nil {
				return err
			}
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(400 * time.Millisecond)
		return t.key("Enter")()
	}
}

// endMark is the last thing that is written to the pipe.
const endMark = "\x00end\x00"

// What a recording must not do to the terminal that plays it: ask it something, take its mouse, change its keys
// or its title, or hold links into our directories.
var notForViewers = regexp.MustCompile(`\x1b\[\?(9|100[0-6]|1015|1016|2004|2031|2026|2027|2048)[hl]|\x1b\[[<>=?][0-9;]*[umq]|\x1b\[[>=?]?[0-9;]*c|\x1b\[\??[0-9]*n|\x1b\[\?[0-9]+\$p|\x1b\[2[23];[0-9]t|\x1b\](0|2|8|1[0-2]|52|9|777);[^\x07\x1b]*(\x07|\x1b\\)`)

// The recording: what is written within a frame is one event, and nothing takes longer than the pause.
const (
	frame = 40 * time.Millisecond
	pause = 2500 * time.Millisecond
)

// cast returns the recording so far.
func (t *tmux) cast() ([]byte, error) {
	if _, err := t.run("pipe-pane"); err != nil { // no more
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(t.socket), "pipe"), []byte(endMark), 0o600); err != nil {
		return nil, err
	}
	<-t.done
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	head := map[string]any{"version": 2, "width": columns, "height": rows, "title": "fermata: a turn, an approval, an interrupt, and resume", "env": map[string]string{"TERM": "xterm-256color"}}
	if err := enc.Encode(head); err != nil {
		return nil, err
	}
	var shown, last time.Duration
	for _, c := range merge(t.chunks) {
		shown += min(c.at-last, pause)
		last = c.at
		data := notForViewers.ReplaceAllString(strings.TrimSuffix(string(c.data), endMark), "")
		if data == "" {
			continue
		}
		if err := enc.Encode([]any{float64(shown.Milliseconds()) / 1000, "o", data}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// merge joins what is written within a frame, so that no character and hardly a sequence is cut in two.
func merge(chunks []chunk) []chunk {
	var list []chunk
	for _, c := range chunks {
		if n := len(list); n > 0 && (c.at-list[n-1].at < frame || !utf8.Valid(list[n-1].data)) {
			list[n-1].data = append(list[n-1].data, c.data...)
			continue
		}
		list = append(list, c)
	}
	return list
}
