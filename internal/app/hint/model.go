package hint

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/humanize"
	p "github.com/fermata-agent/fermata/protocol"
)

// OfModel is a model that names the known one which was meant, if the service has none of
// this name.
func OfModel(m engine.Model, name string, known func() []string) engine.Model {
	return engine.ModelFunc(func(ctx context.Context, r engine.Request, reply *engine.Reply) error {
		err := m.Stream(ctx, r, reply)
		var e *p.Error
		if !errors.As(err, &e) || e.Kind != p.ErrorUnknownModel {
			return err
		}
		if near := humanize.Nearest(name, known()); near != "" && near != name {
			better := *e
			better.Hint = fmt.Sprintf("did you mean %s? Choose it with -m", near)
			return &better
		}
		return err
	})
}

// NoModel is the model of an engine that only reads and repairs conversations.
var NoModel = engine.ModelFunc(func(context.Context, engine.Request, *engine.Reply) error {
	return errors.New("this command runs no turns")
})
