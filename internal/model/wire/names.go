package wire

import (
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
)

// ToolName is the tool that a model means by a name: some servers put a namespace
// before it (functions.shell), leave the marks of the model's own format behind it
// (shell<|channel|>commentary), or change its case. A name that fits no tool is returned as it is.
func ToolName(tools []model.ToolSpec, name string) string {
	offered := func(s string) bool {
		return slices.ContainsFunc(tools, func(t model.ToolSpec) bool { return t.Name == s })
	}
	if offered(name) {
		return name
	}
	clean, _, _ := strings.Cut(name, "<|")
	clean = strings.TrimSpace(clean)
	for _, s := range []string{clean, clean[strings.LastIndexAny(clean, ".:/")+1:]} {
		if offered(s) {
			return s
		}
		for _, t := range tools {
			if strings.EqualFold(t.Name, s) {
				return t.Name
			}
		}
	}
	if clean == "" {
		return name
	}
	return clean
}
