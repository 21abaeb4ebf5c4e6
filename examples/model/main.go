// Command model answers the requests of turns with a model of the program's own: one that streams, can be interrupted
// in the middle of a sentence, and asks to be tried again when it fails.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

// A parrot repeats the last message word by word.
type parrot struct {
	tired bool // it fails once
}

// Stream implements engine.Model.
func (m *parrot) Stream(ctx context.Context, r engine.Request, reply *engine.Reply) error {
	if m.tired {
		m.tired = false
		return &protocol.Error{Kind: protocol.ErrorConnection, Message: "the parrot is asleep", Retry: true, After: time.Millisecond}
	}
	words := strings.Fields(r.LastMessage())
	for i, word := range words {
		if i > 0 {
			reply.Text(" ")
		}
		reply.Text(word)
		if word == "Polly" { // which it thinks about for as long as you let it
			<-ctx.Done()
			return ctx.Err()
		}
	}
	reply.Usage(protocol.Usage{Input: int64(len(r.Items)), Output: int64(len(words)), Total: int64(len(r.Items) + len(words))})
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	e, err := engine.Open(ctx, engine.Config{Store: memory.New(), Model: &parrot{tired: true}})
	if err != nil {
		return err
	}
	defer e.Shutdown(ctx)
	id, err := e.Create(ctx, protocol.Settings{})
	if err != nil {
		return err
	}
	for _, text := range []string{"hello there", "I am Polly the parrot", "good bye"} {
		turn, interrupt := context.WithCancel(ctx)
		end, err := engine.RunTurn(turn, e, id, protocol.UserTurn{Content: protocol.Text(text)}, func(ev protocol.Event) {
			switch b := ev.Body.(type) {
			case *protocol.ModelRetry:
				fmt.Printf("  again, because %s\n", b.Reason)
			case *protocol.Delta:
				if strings.Contains(b.Text, "Polly") {
					interrupt()
				}
			}
		})
		interrupt()
		if err != nil {
			return err
		}
		fmt.Printf("turn %d %s: %q\n", end.Turn, end.End.Reason, end.Message)
	}
	return nil
}
