package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// A session is a program in a terminal.
type session struct {
	cmd     *exec.Cmd
	tty     *os.File
	dir     string
	painted time.Duration

	chunks chan []byte // what the program writes
	out    []byte      // since the last clear
}

const config = `model = "bench"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
env_key = "MOCK_API_KEY"
supports_websockets = false
[projects.%q]
trust_level = "trusted"
`

// start runs a program until its first screen is there, twice: the second time counts.
func start(p peer, url string) (*session, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("screen-%d-%s", os.Getpid(), p.name))
	if err != nil {
		return nil, err
	}
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{work, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, config, url+"/v1", work), 0o644); err != nil {
		return nil, err
	}
	first, err := open(p, dir, work, home)
	if err != nil {
		return nil, err
	}
	first.end()
	s, err := open(p, dir, work, home)
	if err == nil {
		s.dir = dir
	}
	return s, err
}

func open(p peer, dir, work, home string) (*session, error) {
	s := &session{cmd: exec.Command(p.path), chunks: make(chan []byte, 1<<16)}
	s.cmd.Dir = work
	s.cmd.Env = append(os.Environ(), "CODEX_HOME="+home, "FERMATA_HOME="+home, "HOME="+dir, "MOCK_API_KEY=x", "TERM=xterm-256color", "LANG=C.UTF-8")
	began := time.Now()
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		return nil, err
	}
	s.tty = tty
	go s.read() // ends with the program
	// Both show a prompt sign when they are ready to be typed to.
	if err := s.await(30*time.Second, func(out []byte) bool { return bytes.Contains(out, []byte("›")) }); err != nil {
		return nil, fmt.Errorf("no first screen: %w", err)
	}
	s.painted = time.Since(began)
	s.quiet(2 * time.Second)
	return s, nil
}

// The questions that programs ask a terminal, and what it answers.
var answers = []struct{ question, answer string }{
	{"\x1b[6n", "\x1b[1;1R"},
	{"\x1b[c", "\x1b[?62;22c"},
	{"\x1b[?u", "\x1b[?0u"},
	{"\x1b]10;?", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"},
	{"\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"},
	{"\x1b[?2026$p", "\x1b[?2026;2$y"},
}

func (s *session) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.tty.Read(buf)
		if err != nil {
			return
		}
		for _, a := range answers {
			if bytes.Contains(buf[:n], []byte(a.question)) {
				_, _ = s.tty.WriteString(a.answer) // a program that has gone needs none
			}
		}
		s.chunks <- bytes.Clone(buf[:n])
	}
}

var errTime = errors.New("it took too long")

// await waits until what was written since the last clear is enough.
func (s *session) await(bound time.Duration, enough func([]byte) bool) error {
	over := time.After(bound)
	for !enough(s.out) {
		select {
		case data := <-s.chunks:
			s.out = append(s.out, data...)
		case <-over:
			return errTime
		}
	}
	return nil
}

// quiet waits until nothing was written for a while, at most ten times as long.
func (s *session) quiet(d time.Duration) {
	over := time.After(10 * d)
	for {
		select {
		case data := <-s.chunks:
			s.out = append(s.out, data...)
		case <-time.After(d):
			return
		case <-over:
			return
		}
	}
}

// clear forgets what was written.
func (s *session) clear() {
	for s.out = nil; len(s.chunks) > 0; {
		<-s.chunks
	}
}

// echo presses a key again and again, and says how long it takes to be seen.
func (s *session) echo(n int) (string, error) {
	var took []time.Duration
	for i := range n {
		time.Sleep(time.Duration(20+i%17) * time.Millisecond)
		s.clear()
		began := time.Now()
		if _, err := s.tty.WriteString("x"); err != nil {
			return "", err
		}
		if err := s.await(5*time.Second, func(out []byte) bool { return bytes.Contains(out, []byte("x")) }); err != nil {
			return "", err
		}
		took = append(took, time.Since(began))
	}
	_, err := s.tty.WriteString("\x15") // away with them
	s.quiet(time.Second)
	slices.Sort(took)
	return fmt.Sprintf("%s (%s)", ms(took[len(took)/2]), ms(took[len(took)*9/10])), err
}

// wakeups says how often the program was given a processor while nothing happened.
func (s *session) wakeups(d time.Duration) (string, error) {
	s.quiet(3 * time.Second)
	before := switches(s.cmd.Process.Pid)
	time.Sleep(d)
	return fmt.Sprintf("%.1f", float64(switches(s.cmd.Process.Pid)-before)/d.Seconds()), nil
}

var switchForm = regexp.MustCompile(`voluntary_ctxt_switches:\s+(\d+)`)

// switches counts the context switches of all threads.
func switches(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	sum := 0
	for _, t := range tasks {
		text, _ := os.ReadFile(t) // it may have ended
		for _, m := range switchForm.FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			sum += n
		}
	}
	return sum
}

// reply asks for a reply of so many kilobytes.
func (s *session) reply(kb int) (string, error) {
	cpu := s.cpu()
	for _, key := range fmt.Sprintf("KB %d", kb) { // slowly, or it is taken for a paste
		if _, err := s.tty.WriteString(string(key)); err != nil {
			return "", err
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.quiet(time.Second)
	began, err := s.send()
	if err != nil {
		return "", err
	}
	if err := s.await(2*time.Minute, func(out []byte) bool { return bytes.Contains(out, []byte(lastWord(kb))) }); err != nil {
		return "", err
	}
	took := time.Since(began)
	s.quiet(time.Second)
	return fmt.Sprintf("%s, %s", ms(took), ms(s.cpu()-cpu)), nil
}

// send presses Enter until the reply begins, and returns when it was pressed: on a busy machine keys are taken for a
// paste, of which Enter is a part.
func (s *session) send() (time.Time, error) {
	var err error
	for range 5 {
		s.clear()
		began := time.Now()
		if _, err := s.tty.WriteString("\r"); err != nil {
			return began, err
		}
		if err = s.await(10*time.Second, func(out []byte) bool { return bytes.Contains(out, []byte("Part")) }); err == nil {
			return began, nil
		}
	}
	return time.Time{}, err
}

// cpu is the time that the program has computed.
func (s *session) cpu() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid)) // gone: 0
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	sys, _ := strconv.Atoi(fields[12])
	return time.Duration(user+sys) * 10 * time.Millisecond
}

func (s *session) memory() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return "", err
	}
	value := func(name string) int {
		m := regexp.MustCompile(name + `:\s+(\d+)`).FindSubmatch(text)
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n / 1024
	}
	return fmt.Sprintf("%d MB (%d MB)", value("VmRSS"), value("VmHWM")), nil
}

// leftBehind are the processes whose home is the directory that we made for a program.
func leftBehind(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, _ := os.ReadFile(file) // it may have ended, or be another user's
		if slices.Contains(strings.Split(string(env), "\x00"), "HOME="+dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// end ends the program.
func (s *session) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	gone := make(chan struct{})
	go func() { // ends with the program
		_ = s.cmd.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-gone
	}
	s.tty.Close()
}

// close ends the program, and what it left behind.
func (s *session) close() {
	s.end()
	remove(s.dir)
}

// made are the directories that we have made for programs.
func made() []string {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("screen-%d-*", os.Getpid())))
	return dirs
}

// remove ends the processes whose home a directory is, and removes it: Codex starts a daemon that outlives it.
func remove(dir string) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, pid := range leftBehind(dir) {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
		for over := time.Now().Add(5 * time.Second); len(leftBehind(dir)) > 0 && time.Now().Before(over); {
			time.Sleep(50 * time.Millisecond)
		}
	}
	_ = os.RemoveAll(dir) // it is temporary anyway
}
