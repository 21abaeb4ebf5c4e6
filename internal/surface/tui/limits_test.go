package tui

import (
	"context"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// holding makes turns wait for a limit.
func holding(o *Options) {
	before := o.Settings
	o.Settings = func(ctx context.Context) (p.Settings, error) {
		s, err := before(ctx)
		s.OnLimit = p.OnLimitHold
		return s, err
	}
}

func TestTryNow(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, holding)
		usedUp := &p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: time.Hour}
		d.say("go", "enter")
		e.Request().Fail(usedUp)
		d.wait(time.Second)
		d.sees("waiting for a limit", "used up")
		d.say("/try-now", "enter")
		e.Request().Fail(usedUp)
		d.wait(time.Second)
		d.sees("waiting for a limit")
		d.say("/try-now other", "enter")
		e.Request().Answer("at last")
		d.wait(time.Second)
		d.sees("trying again with other", "at last")
		d.seesNot("● waiting for a limit")
		d.say("/try-now", "enter")
		d.wait(time.Second)
		d.sees("limit") // there is nothing to try
	})
}

func TestRevertCommand(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "first", "one")
		answered(d, "second", "two")
		d.say("/revert x", "enter")
		d.sees("N is the number of a turn")
		d.say("/revert 2", "enter")
		d.wait(time.Second)
		d.say("third", "enter")
		r := e.Request()
		if in := r.Inputs(); slices.Contains(in, "user second") || !slices.Contains(in, "user first") || !slices.Contains(in, "user third") {
			t.Errorf("the model is sent %q", in)
		}
		r.Answer("three")
		d.wait(time.Second)
	})
}

func TestCostInStatusLine(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Cost = func(s p.Settings, u p.Usage) (float64, bool) { return float64(u.Total), s.Model == "puppet" }
		})
		d.width = 140
		d.send(tea.WindowSizeMsg{Width: d.width, Height: d.height})
		answered(d, "go", "gone") // 11 tokens
		d.sees("11 tokens", "$11.00")
	})
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Cost = func(p.Settings, p.Usage) (float64, bool) { return 0, false }
		})
		d.width = 140
		d.send(tea.WindowSizeMsg{Width: d.width, Height: d.height})
		answered(d, "go", "gone")
		d.sees("11 tokens")
		d.seesNot("$")
	})
}

// What comes up with the settings is shown once.
func TestMoreNotices(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		left := []string{"beware of this"}
		d := drive(t, e, func(o *Options) {
			o.MoreNotices = func() []string {
				now := left
				left = nil
				return now
			}
		})
		d.wait(time.Second)
		d.sees("beware of this")
	})
}
