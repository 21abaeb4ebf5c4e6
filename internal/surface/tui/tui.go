// Package tui is fermata in a terminal: a conversation that scrolls, a box to
// write in, and a line with the state. It is a client of the engine
// like any other; everything else it needs of the world comes in through
// [Options].
//
// The model (model.go) puts the parts together: package client follows the
// conversation and sends what the user wants, composer, dialog and draw are the
// parts of the screen, commands is what is typed after a slash. What is shown of the
// conversation is transcript's fold of the events, nothing else, and Update does no
// I/O. Start reading at model.Update.
package tui

import (
	"context"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options configure the terminal UI. The functions are called from
// commands, never from Update, except where noted; those that are nil are
// not offered.
type Options struct {
	client.Options       // the engine and its conversations
	commands.Environment // what the commands after a slash use
	composer.Readers     // of what is written

	Pick    bool     // begin by choosing a conversation
	Prompt  string   // the first message, if any
	Images  []string // of the first message: files
	Notices []string // to show at the start, such as warnings
	// MoreNotices are those that came up since, such as with the settings. May be nil.
	MoreNotices func() []string

	Dir  string // the directory to work in
	Home string // the user's home, shown as ~

	History composer.History                                      // what was sent before; may be nil
	Drafts  composer.DraftStore                                   // what was written and not sent; may be nil
	Files   func(ctx context.Context, dir, typed string) []string // as composer.Files

	Branch  func(ctx context.Context, dir string) string // that is checked out
	Prompts []skills.Prompt                              // that can be sent by their name
	// MorePrompts are those that are known by now besides, such as of MCP servers. It does not block, and is
	// called from Update. May be nil.
	MorePrompts func() []composer.Command
	// AsksForTrust reports whether the user should be asked if they trust a directory
	// before a new conversation begins in it. May be nil.
	AsksForTrust func(dir, provider string) bool

	// Moves calls a function when another process has a conversation open than before.
	Moves func(func(p.ConversationID, app.Move))

	// Suspend stops this process until the shell continues it. It is called while
	// the terminal is not ours.
	Suspend func() error
	// Continued receives when we continue after another process stopped us. What the terminal is like
	// then is not known.
	Continued <-chan os.Signal

	In    io.Reader // the terminal's keys
	Out   io.Writer // the terminal
	Env   []string  // of the process
	Color bool      // the terminal has colours, and the user wants them
	Dark  bool      // what to assume of a terminal that does not say
	// Unbracketed says that the terminal may type what is pasted.
	Unbracketed bool

	// Cost is what some usage costs in US dollars, if the price is known. May be nil.
	Cost func(p.Settings, p.Usage) (float64, bool)
}

// A Result is how the program was left.
type Result struct {
	Conversation p.ConversationID // the one on the screen; empty if there was none
	Lines        []string         // what to print
	Shown        []string         // the conversation as it was shown, for the scrollback; may be empty
}

// shutdownBound is how long the end of a running turn is waited for.
const shutdownBound = 3 * time.Second

// Run shows the terminal UI until the person quits or ctx ends. Either way a
// turn that runs is stopped, within a bound, and the terminal is what it was.
// A Result is there also with an error.
func Run(ctx context.Context, o Options) (Result, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m := newModel(life, o)
	m.until = ctx
	prog := terminal.New(life, m, terminal.Options{In: o.In, Out: o.Out, Env: o.Env})
	if o.Moves != nil {
		o.Moves(func(id p.ConversationID, move app.Move) { prog.Send(moved{id, move}) })
	}
	err := prog.RunUntil(ctx, terminal.Messages{
		Ended: func(cause error) tea.Msg { return leave{because: cause} }, Bound: 2 * shutdownBound,
		Continued: o.Continued, OnContinued: continued{},
	})
	return m.result(), err
}
