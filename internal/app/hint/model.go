package hint

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model"
	p "github.com/fermata-agent/fermata/protocol"
)

// OfModel is a client that names the known model which was meant, if the service has none of
// this name.
func OfModel(c model.Client, name string, known func() []string) model.Client {
	return suggesting{c, name, known}
}

type suggesting struct {
	model.Client
	name  string
	known func() []string
}

// Stream is that of the client.
func (s suggesting) Stream(ctx context.Context, prompt model.Prompt, sink model.Sink) (model.End, error) {
	end, err := s.Client.Stream(ctx, prompt, sink)
	var e *p.Error
	if !errors.As(err, &e) || e.Kind != p.ErrorUnknownModel {
		return end, err
	}
	if near := humanize.Nearest(s.name, s.known()); near != "" && near != s.name {
		better := *e
		better.Hint = fmt.Sprintf("did you mean %s? Choose it with -m", near)
		return end, &better
	}
	return end, err
}
