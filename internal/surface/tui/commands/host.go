package commands

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Host is what commands use of the program. Its methods are called from Update only.
type Host interface {
	client.Reporter

	Context() context.Context // ends with the program
	Engine() engine.Engine
	Theme() *theme.Theme

	// Conversation is the one on the screen. Its id is empty before its first message.
	Conversation() (p.ConversationID, *transcript.Transcript)
	// Settings are those in force, or those that the next conversation begins with.
	Settings() p.Settings
	// Configure changes the settings of the turns to come, and shows a text when that is done.
	Configure(change p.Overrides, done string) tea.Cmd
	// Busy reports whether a turn runs, or a message that starts one is on its way.
	Busy() bool
	// Send sends an op to the conversation, after those that wait.
	Send(*client.Op) tea.Cmd
	// Submit sends a message, with changes of the settings for its turn and those after it, which may be nil.
	Submit(text string, change *p.Overrides) tea.Cmd

	// Pick shows a list in place of everything else.
	Pick(*dialog.Picker)
	// ShowPage shows a text in place of everything else.
	ShowPage(*draw.Page)
	// Ask asks a question in place of the composer. chosen is called with the id of the choice, or with
	// an empty one.
	Ask(question dialog.Confirm, chosen func(id string) tea.Cmd)
	// Return puts texts before what is written in the composer.
	Return(texts ...string)
	// ShortDir is a directory as it is shown: the home directory is ~.
	ShortDir(dir string) string
}

// An Environment is what commands use of the world. The functions are called beside Update; a command whose function
// is nil says that it is not available.
type Environment struct {
	Version string         // of the program
	Config  *config.Config // the configuration in force; nil in tests that need none
	// Projects is what is remembered of directories. May be nil.
	Projects *project.Store
	// Changes is what differs in the working tree from the last commit.
	Changes func(ctx context.Context, dir string) (diff string, err error)
	// Undo looks up what undoing a turn's changes to files would do. A zero turn is the last that changed any.
	Undo func(ctx context.Context, id p.ConversationID, turn p.TurnID) (*app.Undo, error)
	// ClipboardImage writes the image in the clipboard to a file.
	ClipboardImage func(ctx context.Context) (file string, err error)
	// Export writes a conversation to a file in the format of its ending, and returns its path.
	Export func(ctx context.Context, id p.ConversationID, dir, file string) (string, error)
	// Others are conversations of other agents, at which nothing looks before the user asks for them. May be nil.
	Others Others
	// Models lists the models that could be used now.
	Models func(ctx context.Context) ([]app.ModelRow, error)
	// MCP is the state of the MCP servers, in words.
	MCP func() string
	// Editor makes the command that edits a text.
	Editor PrepareEditor
}

// A Set is all commands. Its methods are called from Update, with what was typed after the name of the command.
type Set struct {
	Host
	Environment
}

// needConversation is the command that says that there is none yet; nil if there is one.
func (s Set) needConversation() tea.Cmd {
	if id, _ := s.Conversation(); id == "" {
		return s.ShowError(client.ErrNoConversation)
	}
	return nil
}
