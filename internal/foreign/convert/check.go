package convert

import (
	"fmt"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// Check returns what is wrong with a conversation that could be read, one sentence each: what a service would refuse, and what a
// model would not hear of. Importing repairs all of it.
func Check(c foreign.Conversation) []string {
	var problems []string
	made, answered := map[string]int{}, map[string]int{}
	for _, s := range c.Steps {
		switch s.Kind {
		case foreign.Call:
			made[s.ID]++
		case foreign.Output:
			if answered[s.ID]++; made[s.ID] == 0 {
				problems = append(problems, fmt.Sprintf("the output of call %s stands before the call", s.ID))
			}
		}
	}
	for _, s := range c.Steps {
		switch {
		case s.Kind == foreign.Call && answered[s.ID] == 0:
			problems = append(problems, fmt.Sprintf("call %s of %s has no output: it may have run", s.ID, s.Name))
		case s.Kind == foreign.Call && made[s.ID] > 1:
			problems = append(problems, fmt.Sprintf("call %s was made %d times", s.ID, made[s.ID]))
			made[s.ID] = 1
		case s.Kind == foreign.Unsent:
			problems = append(problems, "a message was written and never sent: "+foreign.Title(s.Text))
		}
	}
	if firstUser(c.Steps) == "" {
		problems = append(problems, "no message of the user was recorded")
	}
	return problems
}
