// Command resume answers one message: resume DIR MESSAGE. Interrupt or kill it, and run it again: nothing is lost.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider"
	"github.com/fermata-agent/fermata/provider/openai"
	"github.com/fermata-agent/fermata/store/file"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	wait := engine.ToolFor("wait", "Waits.", func(ctx context.Context, in struct{ Seconds int }) (string, error) {
		fmt.Println("waiting")
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	service := provider.Service{BaseURL: os.Getenv("OPENAI_BASE_URL"), Key: os.Getenv("OPENAI_API_KEY")}
	e, err := engine.Open(ctx, engine.Config{Store: file.New(os.Args[1]), Model: openai.New(service), Tools: []engine.Tool{wait}})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	ctx = engine.WithNewID(ctx, "01a1df48-95b6-78a9-b273-5922d9b1ee09") // created by the first run, resumed by the others
	id, err := e.Create(ctx, protocol.Settings{Model: os.Getenv("OPENAI_MODEL")})
	if err != nil {
		log.Fatal(err)
	}
	end, err := engine.RunTurn(ctx, e, id, protocol.UserTurn{Content: protocol.Text(os.Args[2])}, nil)
	fmt.Println(end.End.Reason, end.Message, err)
}
