// Package web drives the page in a real browser: Debian's Chromium, by chromedp. It is a module of its own, so that
// neither the product nor its tests carry that.
package web

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

var (
	screenshots = flag.String("screenshots", "", "write screenshots to this `directory`")
	bound       = flag.Duration("bound", 5*time.Minute, "how `long` to wait for what must come")
	many        = flag.Bool("many", false, "run also with 200 pages, which takes minutes")
)

// binary builds fermata once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fermata-web")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "fermata")
	cmd := exec.Command("go", "build", "-o", out, "./cmd/fermata")
	cmd.Dir = "../.."
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, text)
	}
	return out, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// chromium returns the browser, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium here")
	return ""
}

// A server is fermata serving the page.
type server struct {
	t    *testing.T
	home string
	work string
	args []string
	cmd  *exec.Cmd
	link string // the last one that was printed
}

// notShort skips what does not fit into the short form.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in the short form")
	}
}

func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	chromium(t)
	s := &server{t: t, home: t.TempDir(), work: t.TempDir(), args: args}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) fermata(args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "FERMATA_HOME="+s.home)
	return cmd
}

// start starts the server and waits for its link.
func (s *server) start() {
	s.t.Helper()
	s.cmd = s.fermata(append([]string{"web", "--no-open", "--demo", "-C", s.work}, s.args...)...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the server printed no link: %v", err)
		}
		if strings.HasPrefix(line, "http") {
			s.link = strings.TrimSpace(line)
			return
		}
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) newLink(args ...string) string {
	s.t.Helper()
	out, err := s.fermata(append([]string{"web", "--link"}, args...)...).Output()
	if err != nil {
		s.t.Fatalf("serve --link: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// origin is where the page is.
func (s *server) origin() string {
	origin, _, _ := strings.Cut(s.link, "/?")
	return origin
}

// A browser has pages.
type browser struct {
	t       *testing.T
	ctx     context.Context
	started bool
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	dir := t.TempDir()
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(dir), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("ignore-certificate-errors", true),
		chromedp.WSURLReadTimeout(*bound),
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	return &browser{t: t, ctx: ctx}
}

// A page is one tab.
type page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // the addresses of all requests
	problems []string // exceptions and errors of the console
}

// open opens a page. Without a link the browser must have used one before.
func (b *browser) open(url string, acts ...action) *page {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	p := &page{t: b.t, ctx: ctx}
	if !b.started { // the first page starts the browser, which later ones share
		b.ctx, b.started = ctx, true
	}
	if _, err := chromedp.Run(ctx, chromedp.Title()); err != nil {
		b.t.Fatalf("start the browser: %v", err)
	}
	p.listen()
	_, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, network.Enable, network.EnableParams{})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	p.run(append(acts, chromedp.Navigate(url))...)
	return p
}

type action = chromedp.Action[chromedp.Void]

// listen notes what the page asks for, and what it has to complain about.
func (p *page) listen() {
	requests, console := chromedp.Events(p.ctx, network.RequestWillBeSent), chromedp.Console(p.ctx)
	go func() { // ends with the page
		for ev, err := range requests {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.requests = append(p.requests, ev.Request.URL)
			p.mu.Unlock()
		}
	}()
	go func() { // likewise
		for m, err := range console {
			if err != nil {
				return
			}
			p.mu.Lock()
			if m.IsException() || m.Source == "security" {
				p.problems = append(p.problems, m.String())
			}
			p.mu.Unlock()
		}
	}()
}

func (p *page) run(acts ...action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *bound)
	defer cancel()
	if err := chromedp.Do(ctx, acts...); err != nil {
		p.t.Fatalf("%v\non the page: %s", err, p.text())
	}
}

func (p *page) text() string { return eval[string](p, `document.body ? document.body.innerText : ""`) }

// eval evaluates JavaScript. Without a value it is the zero value.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, *bound)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil && !errors.Is(err, chromedp.ErrJSUndefined) && !errors.Is(err, chromedp.ErrJSNull) {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func (p *page) do(js string) { p.t.Helper(); eval[chromedp.Void](p, js) }

// until waits until an expression is true.
func (p *page) until(js string) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(*bound)
	for !eval[bool](p, "!!("+js+")") {
		select {
		case <-tick.C:
		case <-end:
			p.t.Fatalf("%s is not true\non the page: %s\nproblems: %v", js, p.text(), p.problems)
		}
	}
}

// sees waits until a text is on the page.
func (p *page) sees(text string) { p.t.Helper(); p.until(has(text)) }

func has(text string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", text) }

func (p *page) click(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("!!document.querySelector(%q)", selector))
	p.do(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// reload loads the page again, and waits for that.
func (p *page) reload() {
	p.t.Helper()
	p.do(`window.before = true; location.reload()`)
	p.until(`!window.before && document.readyState === "complete"`)
}

// press clicks an answer when the page takes it: one that has just taken the place of another is not answered by accident.
func (p *page) press(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("!!document.querySelector(%q)", selector))
	p.until(fmt.Sprintf("!document.querySelector(%q).disabled", selector))
	p.do(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// put writes into the composer and presses a button.
func (p *page) put(text, selector string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`(() => { const c = document.getElementById("composer"); c.value = %q; c.dispatchEvent(new Event("input")); document.querySelector(%q).click(); })()`, text, selector))
}

// say sends a message by the given button, and waits until it is on the page.
func (p *page) say(text, selector string) {
	p.t.Helper()
	const messages = `document.querySelectorAll(".item.user, #queue li").length`
	n := eval[int](p, messages)
	p.put(text, selector)
	p.until(fmt.Sprintf("%s > %d", messages, n))
}

// begin begins a conversation by the page's own dialog.
func (p *page) begin(prompt string) {
	p.t.Helper()
	p.click("[data-act=new]")
	p.until(`document.getElementById("dialog").open`)
	p.do(fmt.Sprintf(`(() => { const d = document.getElementById("dialog"); d.querySelector("textarea").value = %q; d.querySelector(".answers .primary").click(); })()`, prompt))
	p.until(`location.hash.startsWith("#/c/")`)
}

// id is the conversation on the page.
func (p *page) id() string {
	return strings.TrimPrefix(eval[string](p, "location.hash"), "#/c/")
}

func (p *page) ready() {
	p.t.Helper()
	p.until(`document.getElementById("status").textContent === "ready"`)
}

// noProblems fails the test if a script failed.
func (p *page) noProblems() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.problems {
		p.t.Errorf("on the page: %s", x)
	}
}

func phone() action {
	return chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateMobile, chromedp.EmulateTouch)
}

func desktop() action { return chromedp.EmulateViewport(1200, 800) }

func dark() action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	})
}

// shoot takes a picture of the page, if that is wanted.
func (p *page) shoot(name string) {
	p.t.Helper()
	if *screenshots == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, *bound)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
