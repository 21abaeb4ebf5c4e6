package tui

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	p "github.com/fermata-agent/fermata/protocol"
)

// Init begins with a conversation, with the choice of one, or with a new one.
func (m *model) Init() tea.Cmd {
	m.Hold = m.o.AsksForTrust != nil && m.o.Resume == "" && !m.o.Pick
	cmds := []tea.Cmd{tea.Raw(ansi.RequestBackgroundColor), m.comp.Init(), m.preview(), m.findBranch()}
	for _, text := range m.o.Notices {
		m.note(true, "%s", text)
	}
	switch {
	default:
		cmds = append(cmds, m.loadDraft())
	case m.o.Resume != "":
		cmds = append(cmds, m.Open(m.o.Resume))
	case m.o.Pick:
		cmds = append(cmds, m.pickConversation())
	}
	if m.o.Prompt != "" {
		cmds = append(cmds, m.submit(composer.Submit{Text: m.o.Prompt, Images: m.o.Images}, nil), composer.AddToHistory(m.o.History, m.o.Prompt))
	}
	return tea.Batch(append(cmds, m.spin())...)
}

// preview looks up what a new conversation would begin with.
func (m *model) preview() tea.Cmd {
	ctx, f := m.Context(), m.o.Settings
	trusting, asks, dir := m.Hold, m.o.AsksForTrust, m.o.Dir
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
// matters only if one is about to begin.
func (m *model) onPreview(msg previewed) tea.Cmd {
	var cmd tea.Cmd
	if m.Hold && m.ask.Open == nil {
		if msg.unknown {
			cmd = m.askForTrust(msg.repo)
		} else {
			m.Hold = false
			cmd = m.Flush()
		}
	}
	if m.o.MoreNotices != nil {
		for _, text := range m.o.MoreNotices() {
			m.note(true, "%s", text)
		}
	}
	fresh := msg.settings
	if msg.err != nil {
		fresh.Cwd = m.o.Dir
	}
	m.SetFresh(fresh)
	if m.conv.ID != "" || m.Opening() || m.overlay != nil {
		return cmd
	}
	m.setDir(fresh.Cwd)
	if msg.err != nil {
		m.note(true, "%s", client.Explain(msg.err))
	}
	return cmd
}

// askForTrust asks whether the directory is trusted. Messages wait for the answer.
func (m *model) askForTrust(repo bool) tea.Cmd {
	return m.ask.ConfirmGuarded(m.do.TrustQuestion(m.o.Dir, repo), func(choice string) tea.Cmd {
		m.Hold = false
		return m.do.SetTrust(m.o.Dir, choice, func() tea.Cmd { return tea.Batch(m.preview(), m.Flush()) }, m.Flush)
	})
}

// findBranch looks up which branch is checked out where the conversation works.
func (m *model) findBranch() tea.Cmd {
	if m.o.Branch == nil {
		return nil
	}
	ctx, f, dir := m.Context(), m.o.Branch, m.Settings().Cwd
	return func() tea.Msg { return branchFound(f(ctx, dir)) }
}

type branchFound string
