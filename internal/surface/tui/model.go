package tui

import (
	"context"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A model is the program: the parts of the screen, the client that talks to the engine, and the commands. It
// decides which part gets a message and how the parts are laid out; what they are belongs to them. It belongs to the
// goroutine that calls Update and View.
type model struct {
	*client.Client // the conversation on the screen, and what is on its way to it
	do             commands.Set
	conv           *client.Conversation // that of the client
	o              Options
	until          context.Context // ends when the program is asked to end

	width, height int
	theme         *theme.Theme // the widgets share it, so that it is changed in place
	dark, color   bool

	view    *draw.View
	comp    *composer.Composer
	draft   composer.DraftKeeper
	offers  composer.ReturnedOffers // returned messages that are in the composer
	burst   composer.Burst
	ask     commands.Questions // in place of the composer
	overlay dialog.Overlay     // in place of everything; nil if there is none
	sel     draw.Selection
	hint    screen.Hint
	notify  screen.Notifier
	spinner screen.Spinner
	suspend terminal.Suspender

	notes     []*transcript.Item      // what this program has to say in the conversation
	noteCount int                     // how many there ever were
	dir       *atomic.Pointer[string] // where files are completed; read by commands
	branch    string
	armed     time.Time // when the first Ctrl-C came
	escaped   bool      // Esc was the last key, and there was nothing for it to do
	leaving   *leave    // the program is about to end
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{until: ctx, o: o, width: 80, height: 24, dark: o.Dark, color: o.Color, dir: &atomic.Pointer[string]{}}
	m.Client = client.New(ctx, o.Options, m)
	m.conv = &m.Client.Conv
	m.do = commands.Set{Host: m, Environment: o.Environment}
	m.theme = theme.New(theme.Options{Dark: m.dark, Color: m.color})
	m.view = draw.NewView(m.theme)
	if c := o.Config; c != nil && c.FileOpener != "none" {
		m.view.SetLinks(c.FileOpener)
	}
	if m.hidesReasoning() {
		m.view.HideReasoning()
	}
	m.comp = composer.New(m.theme, composer.Options{
		Context: ctx, History: o.History, Files: m.files(), Commands: commandList(o.Prompts), MoreCommands: o.MorePrompts, Placeholder: "Describe a task, or type / for commands", Vim: m.setting().Vim,
	})
	m.ask = commands.Questions{Set: m.do, Client: m.Client, Composer: m.comp}
	m.notify = screen.Notifier{Config: m.setting(), On: o.Config != nil && o.Config.Notifications}
	m.suspend.Stop, m.burst.Unbracketed, m.draft.Store = o.Suspend, o.Unbracketed, o.Drafts
	m.SetFresh(p.Settings{Cwd: o.Dir})
	m.ConversationChanged("")
	return m
}

// setting is how the user wants the screen to be.
func (m *model) setting() config.Screen {
	if m.o.Config == nil {
		return config.Screen{Title: true, Mouse: true, Theme: "auto", NotifyApproval: true, NotifyHold: true, NotifyTurnEnded: true, NotifyRecovered: true}
	}
	return m.o.Config.Screen
}

func (m *model) hidesReasoning() bool { return m.o.Config != nil && m.o.Config.HideReasoning }

// files completes names of files in the conversation's directory.
func (m *model) files() composer.Files {
	find, dir := m.o.Files, m.dir
	if find == nil {
		return nil
	}
	return func(ctx context.Context, typed string) []string { return find(ctx, *dir.Load(), typed) }
}

// setDir sets where the conversation works.
func (m *model) setDir(dir string) {
	m.dir.Store(&dir)
	m.view.SetDir(dir)
}

func (m *model) spin() tea.Cmd {
	busy := m.Busy() || m.Opening() || m.conv.Loading != nil || m.leaving != nil || m.Out.Waiting()
	return m.spinner.Turn(busy, len(m.conv.Transcript.Running) > 0)
}

// Update takes a message of the terminal, of the engine or of one of our own
// commands.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.take(msg)
	m.comp.SetBusy(m.Busy())
	m.comp.SetLabel(m.PlanLabel())
	if m.Busy() && !m.Stopping() {
		m.disarm() // Ctrl-C means something else now
	}
	return m, tea.Batch(cmd, m.ask.Next(), m.spin(), m.takeEdited(), m.keepDraft())
}

func (m *model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseWheelMsg:
		return m.input(msg)
	case tea.MouseClickMsg, tea.MouseMotionMsg, tea.MouseReleaseMsg:
		return m.mouse(msg)
	case tea.WindowSizeMsg:
		m.sel = draw.Selection{}
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		m.repaint(msg.IsDark(), m.color)
	case tea.ColorProfileMsg:
		m.repaint(m.dark, m.color && msg.Profile > colorprofile.ASCII)
	case tea.ModeReportMsg:
		m.onMode(msg)
	case tea.FocusMsg:
		m.notify.Unfocused = false
	case tea.BlurMsg:
		m.notify.Unfocused = true
	case client.Batch:
		return m.onBatch(msg)
	case terminal.Done:
		return msg.Then()
	default:
		if cmd, used := m.Client.Update(msg); used {
			return cmd
		}
		return m.takeOwn(msg)
	}
	return nil
}

// takeOwn takes the messages of our own commands and of those who run the program.
func (m *model) takeOwn(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case screen.Tick:
		m.spinner.OnTick()
	case screen.HintOver:
		m.hint.OnOver(msg)
	case disarm:
		if msg.at.Equal(m.armed) {
			m.disarm()
		}
	case composer.DraftDue:
		return m.saveDraft()
	case composer.BurstOver:
		return m.writeAll(m.burst.OnOver(m.comp, msg))
	case previewed:
		return m.onPreview(msg)
	case branchFound:
		m.branch = string(msg)
	case continued:
		return m.suspend.Continued(m.onPaused)
	case moved:
		m.onMoved(msg)
	case leave:
		return m.leave(msg)
	case shut:
		return m.onShut(msg)
	case gone:
		return tea.Quit
	case commands.Edited:
		return m.onEdited(msg)
	default:
		return m.forward(msg)
	}
	return nil
}

// forward passes a message that is not ours to the widgets: it may be the
// answer to a command of theirs.
func (m *model) forward(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	if m.overlay != nil {
		cmd, gone := m.overlay.Take(msg)
		if gone {
			m.overlay = nil
		}
		cmds = append(cmds, cmd)
	}
	_, answered := m.ask.Take(msg)
	cmds = append(cmds, answered)
	action, cmd := m.comp.Update(msg)
	if failed, ok := action.(composer.Failed); ok {
		cmds = append(cmds, m.ShowError(failed.Err))
	}
	return tea.Batch(append(cmds, cmd)...)
}

// onMode learns what the terminal can do. Bubble Tea goes by the same rule.
func (m *model) onMode(msg tea.ModeReportMsg) {
	if msg.Mode == ansi.ModeUnicodeCore {
		safetext.Join(!msg.Value.IsNotRecognized() && !msg.Value.IsPermanentlyReset())
		m.repaint(m.dark, m.color)
	}
}

// repaint changes the colours of everything.
func (m *model) repaint(dark, color bool) {
	o := theme.Options{Dark: dark, Color: color}.With(m.setting().Theme)
	m.dark, m.color = o.Dark, o.Color
	t := theme.New(o)
	*m.theme = *t
	m.view.SetTheme(t) // another one, so that it sees that it has changed
}
