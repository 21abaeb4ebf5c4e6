package terminal

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Messages are what a program is sent from outside.
type Messages struct {
	// Ended makes the message that the context of RunUntil has ended. The program is expected to quit.
	Ended func(cause error) tea.Msg
	Bound time.Duration // after which a program is killed that does not

	Continued   <-chan os.Signal // receives when the process continues after another one stopped it
	OnContinued tea.Msg          // is sent then
}

// RunUntil is Run for a program that quits when ctx ends. The error is the cause of that then.
func (p *Program) RunUntil(ctx context.Context, m Messages) error {
	over := make(chan struct{})
	go func() { // ends with the program
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		go p.Send(m.Ended(context.Cause(ctx))) // blocks while an editor has the terminal
		select {
		case <-over:
		case <-time.After(m.Bound):
			p.Kill()
		}
	}()
	go func() { // the same
		for {
			select {
			case <-over:
				return
			case <-m.Continued:
				p.Send(m.OnContinued)
			}
		}
	}()
	err := p.Run()
	close(over)
	return causeOf(ctx, err)
}

// causeOf is why a program has ended: because of ctx, unless it crashed.
func causeOf(ctx context.Context, err error) error {
	if !errors.Is(err, ErrPanic) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
