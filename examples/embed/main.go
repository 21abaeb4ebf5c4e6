// Command embed runs turns of the demo model in a program of its own: it interrupts one from another
// goroutine, shows that nothing was lost, and continues in a fork.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/file"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "conversations-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := engine.Open(ctx, engine.Config{Store: file.New(dir), Model: demo.New()})
	if err != nil {
		return err
	}
	defer e.Shutdown(ctx)
	id, err := e.Create(ctx, protocol.Settings{})
	if err != nil {
		return err
	}

	// The turn says a word every 50 ms. Another goroutine interrupts it after a few.
	spoken := make(chan struct{}, 100)
	go func() {
		for range 5 {
			<-spoken
		}
		if _, err := e.Submit(ctx, id, protocol.Interrupt{}); err != nil {
			log.Print(err)
		}
	}()
	end, err := engine.RunTurn(ctx, e, id, message("talk 100"), func(ev protocol.Event) {
		if _, ok := ev.Body.(*protocol.Delta); ok {
			spoken <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	fmt.Printf("turn %d: %s\n", end.Turn, end.End.Reason)
	fmt.Printf("kept what was said: %t\n", strings.HasPrefix(end.Message, "[demo] "))

	// A client that attaches later sees the same, and learns where the past ends.
	follow, leave := context.WithCancel(ctx)
	defer leave()
	for ev, err := range e.Attach(follow, id, 0, leave) {
		if err != nil {
			break // it has left
		}
		if b, ok := ev.Body.(*protocol.AssistantMessage); ok {
			fmt.Printf("attached: a message, partial: %t\n", b.Partial)
		}
	}

	// A fork is a conversation of its own. The model knows what happened.
	fork, err := e.Fork(ctx, id, 0)
	if err != nil {
		return err
	}
	end, err = engine.RunTurn(ctx, e, fork, message("what happened?"), nil)
	if err != nil {
		return err
	}
	fmt.Printf("turn %d of the fork: %s\n", end.Turn, end.End.Reason)
	first, _, _ := strings.Cut(end.Message, "\n")
	fmt.Println(first)
	return nil
}

func message(text string) protocol.UserTurn {
	return protocol.UserTurn{Content: protocol.Text(text)}
}
