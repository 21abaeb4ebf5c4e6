package tool

import (
	"context"
	"encoding/json"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// A Plan lets the model show its list of steps.
type Plan struct{}

var planSchema = &args.Schema{
	Tool: "update_plan", Example: `{"plan":[{"step":"Write the test","status":"completed"},{"step":"Fix the parser","status":"in_progress"}]}`,
	Params: []args.Param{
		{Name: "explanation", Type: args.String, Description: "Why the plan changed, if it did."},
		{
			Name: "plan", Type: args.Objects, Required: true, Description: "All steps, in order.", Aliases: []string{"steps", "todos"},
			Item: json.RawMessage(`{"type":"object","properties":{"step":{"type":"string","description":"What is to be done, in a few words."},` +
				`"status":{"type":"string","enum":["pending","in_progress","completed"]}},"required":["step","status"],"additionalProperties":false}`),
		},
	},
}

// Spec describes the tool to the model.
func (Plan) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "update_plan", Kind: protocol.CallFunction,
		Description: planSchema.Describe("Shows the user your plan: a list of steps, each pending, in_progress or completed. At most one step is in_progress. " +
			"Send the whole list each time. Use it for work of several steps, and keep it up to date."),
		Parameters: planSchema.JSON(),
	}
}

// ReadOnly reports that plans are taken in order.
func (Plan) ReadOnly() bool { return false }

// Run records the plan.
func (Plan) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(planSchema)
	if wrong != nil {
		return *wrong
	}
	plan := []protocol.PlanStep{}
	for _, o := range v.Objects("plan") {
		step := protocol.PlanStep{Step: field(o, "step", "content", "title", "task", "text", "description"), Status: field(o, "status", "state")}
		switch step.Status {
		case "":
			step.Status = "pending"
		case "done", "complete":
			step.Status = "completed"
		case "pending", "in_progress", "completed":
		default:
			return failure(planSchema.Error("unknown status " + step.Status + "; use pending, in_progress or completed"))
		}
		if step.Step == "" {
			return failure(planSchema.Error("a step has no text"))
		}
		plan = append(plan, step)
	}
	err := call.Host.Record(ctx, &protocol.PlanUpdated{Call: call.ID, Explanation: v.String("explanation"), Plan: plan})
	if err != nil {
		return notRun(ctx, err)
	}
	return Result{Output: protocol.ToolOutput{Output: "Plan updated"}}
}

// field is the first of the named members of an object that is a string.
func field(o map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(o[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
