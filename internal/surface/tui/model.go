package tui

import (
	"context"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A model is the state of the program. It belongs to the goroutine that calls
// Update and View.
type model struct {
	ctx   context.Context // ends with the program
	asked context.Context // ends when the program is asked to
	o     Options

	width, height int
	theme         *theme.Theme // the widgets share it, so that it is changed in place
	dark, color   bool

	conv      conversation
	view      *draw.View
	comp      *composer.Composer
	fresh     p.Settings  // of the next conversation
	requested p.Overrides // of this person, for a conversation that has not begun

	dialog *asking // in place of the composer
	aside  bool    // the approval makes room for a command after a slash
	screen overlay // in place of everything; nil if there is none

	out      client.Outbox
	opening  *attempt                          // nil if none is on its way
	before   p.ConversationID                  // the one before that on the screen
	leftOpen []p.ConversationID                // not on the screen, and open because commands run in them
	created  *atomic.Pointer[p.ConversationID] // one that was created, until Update knows of it
	dir      *atomic.Pointer[string]           // where files are completed; read by commands
	stopTurn p.TurnID                          // the turn that was asked to stop
	stopNext bool                              // stop what the message leads to that is on its way
	armed    time.Time                         // when the first Ctrl-C came
	leaving  *leave                            // the program is about to end

	draft     composer.DraftKeeper
	sel       draw.Selection
	escaped   bool // Esc was the last key, and there was nothing for it to do
	trusting  bool // messages wait until it is known whether the directory is trusted
	asleep    bool // we have stopped ourselves: that we go on is no news
	burst     burst
	hint      hint
	where     string // the branch
	spinning  bool
	frame     int
	noteCount int // how many notes there were

	unfocused bool // the terminal says that the person looks elsewhere
}

// An overlay takes the place of everything else.
type overlay interface {
	// update takes a message; gone says that the screen is to be left.
	update(tea.Msg) (cmd tea.Cmd, gone bool)
	view(width, height int) ([]string, *tea.Cursor)
	note(string) // shows a remark
}

// An asking is a dialog and what its answer leads to.
type asking struct {
	*dialog.Dialog
	item *transcript.Item // of an approval
	plan bool             // it asks whether a plan is accepted
	turn p.TurnID         // of a question that means nothing when the turn has ended
	done func(dialog.Answer) tea.Cmd

	question dialog.QuestionID // of an MCP server
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{
		ctx: ctx, asked: ctx, o: o, width: 80, height: 24, dark: o.Dark, color: o.Color,
		dir: &atomic.Pointer[string]{}, created: &atomic.Pointer[p.ConversationID]{},
	}
	m.theme = theme.New(theme.Options{Dark: m.dark, Color: m.color})
	m.view = draw.NewView(m.theme)
	m.configureView()
	m.comp = composer.New(m.theme, composer.Options{
		Context: ctx, History: o.History, Files: m.files(), Commands: commandList(o.Prompts), MoreCommands: o.MorePrompts, Placeholder: "Describe a task, or type / for commands", Vim: m.setting().Vim,
	})
	m.fresh.Cwd, m.draft.Store = o.Dir, o.Drafts
	m.begin("", engine.Snapshot{}, 0)
	return m
}

// configureView sets what the configuration says of how items are shown.
func (m *model) configureView() {
	c := m.o.Config
	if c == nil {
		return
	}
	if c.FileOpener != "none" {
		m.view.SetLinks(c.FileOpener)
	}
	if c.HideReasoning {
		m.view.HideReasoning()
	}
}

// files completes names of files in the conversation's directory.
func (m *model) files() composer.Files {
	find, dir := m.o.Files, m.dir
	if find == nil {
		return nil
	}
	return func(ctx context.Context, typed string) []string { return find(ctx, *dir.Load(), typed) }
}

// setDir says where the conversation works.
func (m *model) setDir(dir string) {
	m.dir.Store(&dir)
	m.view.SetDir(dir)
}

// Init begins with a conversation, with the choice of one, or with a new one.
func (m *model) Init() tea.Cmd {
	m.trusting = m.o.AsksForTrust != nil && m.o.Resume == "" && !m.o.Pick
	cmds := []tea.Cmd{tea.Raw(ansi.RequestBackgroundColor), m.comp.Init(), m.preview(), m.branch()}
	for _, text := range m.o.Notices {
		m.note(true, "%s", text)
	}
	switch {
	default:
		cmds = append(cmds, m.loadDraft())
	case m.o.Resume != "":
		cmds = append(cmds, m.open(m.o.Resume))
	case m.o.Pick:
		cmds = append(cmds, m.pickConversation())
	}
	if m.o.Prompt != "" {
		cmds = append(cmds, m.submit(composer.Submit{Text: m.o.Prompt, Images: m.o.Images}), m.remember(m.o.Prompt))
	}
	return tea.Batch(cmds...)
}

// remember puts a message that was not written in the composer into the history.
func (m *model) remember(text string) tea.Cmd {
	history := m.o.History
	if history == nil {
		return nil
	}
	return func() tea.Msg {
		if err := history.Add(text); err != nil {
			return terminal.Done{Then: func() tea.Cmd { return m.ShowError(err) }}
		}
		return nil
	}
}

// preview looks up what a new conversation would begin with.
func (m *model) preview() tea.Cmd {
	ctx, f := m.ctx, m.o.Settings
	trusting, asks, dir := m.trusting, m.o.AsksForTrust, m.o.Dir
	return func() tea.Msg {
		s, err := f(ctx)
		out := previewed{settings: s, err: err}
		if trusting && err == nil && asks(dir, s.Provider) {
			out.unknown, out.repo = true, project.InRepo(dir)
		}
		return out
	}
}

type previewed struct {
	settings p.Settings
	err      error
	unknown  bool // it is not known whether the directory is trusted
	repo     bool // it is in a git repository
}

// onPreview takes the settings of the next conversation. That there are none
// matters only to whoever is about to begin one.
func (m *model) onPreview(msg previewed) tea.Cmd {
	m.fresh = msg.settings
	var cmd tea.Cmd
	if msg.unknown && m.trusting && m.dialog == nil {
		cmd = m.trustDialog(msg.repo)
	} else if m.trusting && m.dialog == nil {
		m.trusting = false
		cmd = m.flush()
	}
	if m.o.MoreNotices != nil {
		for _, text := range m.o.MoreNotices() {
			m.note(true, "%s", text)
		}
	}
	if msg.err != nil {
		m.fresh.Cwd = m.o.Dir
	}
	if m.conv.id != "" || m.opening != nil || m.screen != nil {
		return cmd
	}
	m.setDir(m.fresh.Cwd)
	if msg.err != nil {
		m.note(true, "%s", explain(msg.err))
	}
	return cmd
}

// branch looks up where we are.
func (m *model) branch() tea.Cmd {
	if m.o.Branch == nil {
		return nil
	}
	ctx, f, dir := m.ctx, m.o.Branch, m.Settings().Cwd
	return func() tea.Msg { return branched(f(ctx, dir)) }
}

type branched string

// tick turns the spinner while something goes on.
type tick struct{}

const (
	tickTime = 100 * time.Millisecond
	slowTick = time.Second // for clocks alone
)

func (m *model) spin() tea.Cmd {
	every := tickTime
	switch {
	case m.spinning:
		return nil
	case m.Busy() || m.opening != nil || m.conv.loading != nil || m.leaving != nil || m.out.Waiting():
	case len(m.conv.tr.Running) > 0:
		every = slowTick
	default:
		return nil
	}
	m.spinning = true
	return tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
}

// Update takes a message of the terminal, of the engine or of one of our own
// commands.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.take(msg)
	m.comp.SetBusy(m.Busy())
	m.comp.SetLabel(m.planLabel())
	m.endPlanDialog()
	if m.Busy() && !m.stopping() {
		m.disarm() // Ctrl-C means something else now
	}
	return m, tea.Batch(cmd, m.ask(), m.spin(), m.takeEdited(), m.keepDraft())
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
	case client.Batch:
		return m.onBatch(msg)
	case client.Sent:
		return m.onSent(msg)
	case interrupted:
		return m.onInterrupted(msg)
	case approved:
		return m.onApproved(msg)
	case opened:
		return m.onOpened(msg)
	case loaded:
		return m.onLoaded(msg)
	case forked:
		return m.onForked(msg)
	default:
		return m.takeSmall(msg)
	}
	return nil
}

func (m *model) takeSmall(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tick:
		m.spinning = false
		m.frame++
	case tea.FocusMsg:
		m.unfocused = false
	case tea.BlurMsg:
		m.unfocused = true
	case hintOver:
		if msg.n == m.hint.n {
			m.clearHint()
		}
	case disarm:
		if msg.at.Equal(m.armed) {
			m.disarm()
		}
	case composer.DraftDue:
		return m.saveDraft()
	case previewed:
		return m.onPreview(msg)
	case branched:
		m.where = string(msg)
	case unhold:
		if msg.n == m.burst.n {
			return m.unhold()
		}
	case continued:
		return m.onContinued()
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
	case terminal.Done:
		return msg.Then()
	default:
		return m.forward(msg)
	}
	return nil
}

// forward gives a message that is not ours to the widgets: it may be the
// answer to a command of theirs.
func (m *model) forward(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	if m.screen != nil {
		cmd, gone := m.screen.update(msg)
		if gone {
			m.screen = nil
		}
		cmds = append(cmds, cmd)
	}
	if d := m.dialog; d != nil {
		a, cmd := d.Update(msg)
		cmds = append(cmds, cmd)
		if a.Done {
			m.dialog = nil
			cmds = append(cmds, d.done(a))
		}
	}
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
