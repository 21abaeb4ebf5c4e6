// Package tuicmd holds the commands of the terminal UI: fermata without a command, fermata resume and fermata
// attach. It gives the UI what it needs of the terminal and of the machine; the UI itself is package tui.
package tuicmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/exportcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/runcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	p "github.com/fermata-agent/fermata/protocol"
)

// tuiFlags are the flags of what a person sits in front of.
type tuiFlags struct {
	cli.RunFlags
	images []string
}

func (f *tuiFlags) register(fs *pflag.FlagSet) {
	f.RunFlags.Register(fs)
	fs.StringArrayVarP(&f.images, "image", "i", nil, "attach image `FILE` to the first message; separate several by commas")
	fs.BoolVar(&f.Detach, "detach", false, "run turns in fermata serve: they continue if the terminal is closed; fermata attach joins them")
}

// Commands returns fermata resume and fermata attach.
func Commands(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{resumeCommand(s), attachCommand(s)}
}

// Interactive makes the root command a conversation in the terminal.
func Interactive(root *cobra.Command, s cli.Streams) {
	var f tuiFlags
	f.register(root.Flags())
	root.Use = "fermata [PROMPT]"
	root.Long = "A coding agent that can be interrupted at any time and resumed with nothing lost.\n\n" +
		"Without a command, start a conversation in the terminal UI, with PROMPT as its first message if given."
	root.Example = "  fermata\n  fermata \"Explain this repository\"\n  fermata resume --last\n  fermata exec --demo \"run: echo hello\""
	root.RunE = func(cmd *cobra.Command, a []string) error {
		switch {
		case len(a) > 1:
			return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("unknown command %q; a prompt of several words needs quotes", a[0]), Hint: near(cmd, a[0]) + "see fermata --help"}
		case len(a) == 1 && cmd.ArgsLenAtDash() < 0 && !strings.ContainsAny(a[0], " \t\n"):
			return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("unknown command %q", a[0]), Hint: rootHint(cmd, a[0])}
		}
		t := terminalRun{flags: f, prompt: a}
		if why := noTerminal(s); why != "" {
			return t.exec(cmd, s, why)
		}
		return t.run(cmd.Context(), s)
	}
	root.AddCommand(guardCommand(s))
}

// rootHint says what a user may have meant who typed one word. A word that is
// meant for the model is rare; a command with a slip is not, and would cost a turn.
func rootHint(cmd *cobra.Command, word string) string {
	return near(cmd, word) + "see fermata --help; to use it as a prompt: fermata -- " + word
}

// near asks whether a command was meant that is spelt nearly so.
func near(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	name := humanize.Nearest(word, names)
	if name == "" {
		return ""
	}
	return "did you mean " + name + "? "
}

// noTerminal says why there can be no conversation in the terminal; empty if
// there can be.
func noTerminal(s cli.Streams) string {
	switch {
	case !cli.Terminal(s.In):
		return "stdin is not a terminal"
	case !cli.Terminal(s.RawOut):
		return "stdout is not a terminal"
	case os.Getenv("TERM") == "dumb", os.Getenv("TERM") == "":
		return fmt.Sprintf("TERM is %q", os.Getenv("TERM"))
	}
	return ""
}

// A terminalRun is a conversation in the terminal to start or to resume.
type terminalRun struct {
	flags  tuiFlags
	prompt []string // one, or none
	name   string   // the conversation to resume
	last   bool     // resume the last one
	all    bool     // of any directory
	pick   bool     // let the person choose
}

// exec is what is done without a terminal: one turn, in words.
func (t terminalRun) exec(cmd *cobra.Command, s cli.Streams, why string) error {
	if t.pick {
		return cli.Usagef("resume: %w (%s)", app.ErrWhich, why)
	}
	if len(t.prompt) == 0 && t.name == "" && !t.last {
		if !s.Piped() {
			return cmd.Help()
		}
		text, err := s.ReadText()
		if err != nil {
			return err
		}
		if text == "" {
			return cmd.Help()
		}
		s.In, t.prompt = strings.NewReader(""), []string{text}
	}
	fmt.Fprintf(s.Err, "fermata: %s: running as fermata exec\n", why)
	turn := runcmd.Turn{RunFlags: t.flags.RunFlags, Images: t.flags.images, Name: t.name, Last: t.last, All: t.all, Prompt: t.prompt}
	return turn.Run(cmd.Context(), s)
}

// run shows the conversation until the person leaves.
func (t terminalRun) run(ctx context.Context, s cli.Streams) error {
	if t.name == "" && !t.last && !t.pick {
		if err := t.flags.firstRun(ctx, s); err != nil {
			return err
		}
	}
	t.flags.Client, t.flags.Detachable = "terminal", true
	var warned warnings // they would be hidden behind the screen
	r, err := t.flags.Open(ctx, cli.NewStreams(s.In, s.RawOut, &warned))
	if err != nil {
		fmt.Fprint(s.Err, strings.Join(append(warned.take(), ""), "\n"))
		return err
	}
	defer r.Close()
	o := screenOptions(r, t.flags)
	o.In, o.Out, o.Pick = s.In, s.RawOut, t.pick
	o.Notices, o.MoreNotices = warned.notices(), warned.notices
	o.Images = runcmd.ImageFiles(t.flags.images)
	if len(t.prompt) > 0 {
		o.Prompt = t.prompt[0]
	}
	if t.name != "" || t.last {
		if o.Resume, err = cli.FindOrLast(ctx, r, t.name, t.all); err != nil {
			return err
		}
	}
	ctx, stopped := screenSignals(ctx, s)
	g := startGuard(s)
	o.Shown = g.shows
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	o.Continued = continued
	left, err := tui.Run(ctx, o)
	g.dismiss()
	r.Close() // before anything is said: what runs has ended then
	for _, line := range left.Shown {
		fmt.Fprintln(s.RawOut, line)
	}
	for _, line := range left.Lines {
		fmt.Fprintln(s.Err, line)
	}
	if stopped() != nil {
		return &cli.ExitError{Code: cli.SignalCode(stopped())}
	}
	return err
}

// warnings keeps lines for the screen.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

// take returns the lines that are new.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.FieldsFunc(w.text.String(), func(r rune) bool { return r == '\n' })
	w.text.Reset()
	return lines
}

// notices are the lines that are new as the screen shows them: a warning is marked as one there.
func (w *warnings) notices() []string {
	lines := w.take()
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(lines[i], "fermata: warning: "), "fermata: note: ")
	}
	return lines
}

// screenOptions configure the terminal UI.
func screenOptions(r *app.App, f tuiFlags) tui.Options {
	home, _ := os.UserHomeDir() // only to shorten what is shown
	var history composer.History
	var drafts composer.DraftStore
	if r.Config.History.Persistence != "none" {
		drafts = composer.NewDraftFiles(filepath.Join(r.Config.Home, "drafts"), r.Cwd)
		history = composer.NewHistoryFile(filepath.Join(r.Config.Home, "history.jsonl")).Limit(r.Config.History.MaxBytes)
	}
	return tui.Options{
		Options: clientOptions(r, f),
		Environment: commands.Environment{
			Config: r.Config, Version: cli.Version(), Projects: r.Projects, Changes: treeChanges, Undo: planUndo(r), ClipboardImage: clipboardImage,
			Others: imports.NewFinder(r.Store().Store, r.Config.Home, cli.Version(), os.Getenv),
			Models: r.Models.Usable, MCP: func() string { return mcp.Describe(r.MCPStatus()) }, Editor: editorCommand,
			Export: func(ctx context.Context, id p.ConversationID, dir, file string) (string, error) {
				return exportcmd.ToFile(ctx, r.Engine.Local, id, dir, file)
			},
		},
		Dir: r.Cwd, Home: home,
		History: history, Drafts: drafts, Files: withResources(r, (&finders{}).find), MorePrompts: serverPrompts(r),
		Readers: composer.Readers{Image: tool.ReadImage, Expand: r.Messages().Expand}, Branch: branch, Prompts: r.Prompts(r.Cwd), AsksForTrust: r.AsksTrust, Cost: r.Models.Cost,
		Moves: r.Engine.OnMove, Suspend: suspend,
		Env: os.Environ(), Color: os.Getenv("NO_COLOR") == "", Dark: cli.DarkTerminal(),
		Unbracketed: !r.Config.DisablePasteBurst,
	}
}

// clientOptions configure how the terminal UI uses the engine.
func clientOptions(r *app.App, f tuiFlags) client.Options {
	return client.Options{
		Engine: r.Engine, RunBy: r.RunBy, Owner: processName,
		Settings: func(context.Context) (p.Settings, error) {
			s, err := r.NewSettings(r.Config.Settings)
			s.OnLimit = r.Config.AttendedOnLimit()
			return s, err
		},
		Overrides: func(now p.Settings) p.Overrides {
			over := r.Config.Overrides(now)
			if f.Dir != "" {
				over.Cwd = &r.Cwd
			}
			if wanted := r.Config.AttendedOnLimit(); now.OnLimit != wanted { // a user is there now
				over.OnLimit = &wanted
			}
			return over
		},
	}
}

// withResources proposes resources of MCP servers before files.
func withResources(r *app.App, files func(context.Context, string, string) []string) func(context.Context, string, string) []string {
	return func(ctx context.Context, dir, typed string) []string {
		return append(r.Messages().FindResources(typed), files(ctx, dir, typed)...)
	}
}

// serverPrompts are the prompts of MCP servers, as commands.
func serverPrompts(r *app.App) func() []composer.Command {
	return func() []composer.Command {
		var list []composer.Command
		for _, of := range r.Messages().Prompts() {
			name := strings.ToLower(of.Server + "." + of.Name)
			list = append(list, composer.Command{Name: safetext.ShowLine(name), Args: safetext.ShowLine(of.Usage()), Help: safetext.ShowLine(of.Description)})
		}
		return list
	}
}

// finders find files, each in its directory.
type finders struct {
	mu    sync.Mutex
	byDir map[string]*composer.FileFinder // guarded by mu
}

func (f *finders) find(ctx context.Context, dir, typed string) []string {
	return f.in(dir).Find(ctx, typed)
}

func (f *finders) in(dir string) *composer.FileFinder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byDir[dir] == nil {
		if f.byDir == nil {
			f.byDir = map[string]*composer.FileFinder{}
		}
		f.byDir[dir] = composer.NewFileFinder(gitFiles(dir), composer.Walk(dir, filesMax))
	}
	return f.byDir[dir]
}

// filesMax is how many files are offered where git does not list them.
const filesMax = 50_000

// screenSignals is stopSignals for a program in raw mode, where Ctrl-C is a key: a
// signal that comes later ends the program with the terminal as it was.
func screenSignals(ctx context.Context, s cli.Streams) (context.Context, func() os.Signal) {
	return cli.StopSignalsThen(ctx, restorer(s))
}

// leaveScreen leaves the alternate screen, shows the cursor, and turns off the
// mouse, pastes in brackets and keyboard enhancements. The cursor is saved first: where
// there is no alternate screen to leave, as inline, it stays where it is. Below it is
// nothing that the user needs.
const leaveScreen = "\x1b7\x1b[?1049l\x1b[J\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[>4;0m\x1b[<u"

// restorer remembers what the terminal is like.
func restorer(s cli.Streams) func() {
	in, ok := s.In.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(in.Fd())
	if err != nil {
		return func() {}
	}
	return func() {
		_, _ = s.RawOut.Write([]byte(leaveScreen))
		_ = term.Restore(in.Fd(), state)
	}
}

// firstRun asks for a model if there is none.
func (f *tuiFlags) firstRun(ctx context.Context, s cli.Streams) error {
	l, err := f.Load(s)
	if err != nil {
		for _, w := range l.Warnings {
			cli.Warn(s, w)
		}
		return err
	}
	_, err = l.Models().Choose("")
	var missing *config.MissingKeyError
	if !errors.Is(err, config.ErrNoProvider) && !errors.As(err, &missing) {
		return nil // what else is wrong is reported later
	}
	why := ""
	if missing != nil {
		why = missing.Error()
	}
	ctx, stopped := screenSignals(ctx, s)
	c, err := screen.RunFirst(ctx, screen.FirstOptions{
		In: s.In, Out: s.RawOut, Env: os.Environ(), Color: os.Getenv("NO_COLOR") == "", Dark: cli.DarkTerminal(),
		Why: why, Offers: offers(l, missing), Probe: func(context.Context) (string, bool) { return l.Models().ProbeOllama() },
	})
	if stopped() != nil {
		return &cli.ExitError{Code: cli.SignalCode(stopped())}
	}
	if err != nil {
		return err
	}
	if c.Provider == "" {
		return &cli.ExitError{Code: cli.ExitOK}
	}
	f.Typed.Provider = c.Provider
	f.Typed.Demo = c.Provider == config.Demo
	if c.Key != "" {
		return setupcmd.KeepKey(setupcmd.For(s), l, c.Provider, c.Variable, c.Key)
	}
	return nil
}
