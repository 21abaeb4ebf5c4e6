package app

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

// A ModelChoice is a model that a conversation of the configured provider can be run with.
type ModelChoice struct {
	Provider      string
	Model         string
	Efforts       []string
	DefaultEffort string
	Vision        bool
	Default       bool // it is what new conversations begin with
}

// Choices lists the models of the configured provider, the configured one first, then the newest.
func (a *App) Choices(context.Context) ([]ModelChoice, error) {
	choice, err := a.Models.Choose("")
	if err != nil {
		return nil, err
	}
	first := ModelChoice{Provider: choice.Provider.ID, Model: choice.Model, Default: true}
	var known []catalogue.Model
	for m := range catalogue.Open(a.Config.Home).All() {
		switch {
		case m.Provider != choice.Provider.ID:
		case m.ID == choice.Model:
			first.Efforts, first.DefaultEffort, first.Vision = m.Efforts, m.DefaultEffort(), m.Vision
		default:
			known = append(known, m)
		}
	}
	slices.SortStableFunc(known, func(x, y catalogue.Model) int { return cmp.Compare(y.Released, x.Released) })
	list := []ModelChoice{first}
	for _, m := range known {
		list = append(list, ModelChoice{Provider: m.Provider, Model: m.ID, Efforts: m.Efforts, DefaultEffort: m.DefaultEffort(), Vision: m.Vision})
	}
	return list, nil
}

// A Skill is a skill that the model can use.
type Skill = skills.Skill

// SkillList lists the skills for a directory.
func (a *App) SkillList(cwd string) []Skill {
	user, _ := os.UserHomeDir() // without one there are no skills in it
	return skills.Find(a.Config.Home, user, a.place(cwd))
}
