package tool

import (
	"context"
	"encoding/json"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// A Plan lets the model show its list of steps.
type Plan struct{}

// Spec describes the tool to the model.
func (Plan) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "update_plan", Kind: protocol.CallFunction,
		Description: "Shows the user your plan: a list of steps, each pending, in_progress or completed. At most one step is in_progress. " +
			"Give the whole list each time. Use it for work of several steps, and keep it up to date.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"explanation":{"type":"string"},` +
			`"plan":{"type":"array","items":{"type":"object","properties":{"step":{"type":"string"},` +
			`"status":{"type":"string","enum":["pending","in_progress","completed"]}},"required":["step","status"],"additionalProperties":false}}},` +
			`"required":["plan"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that plans are taken in order.
func (Plan) ReadOnly() bool { return false }

// Run records the plan.
func (Plan) Run(ctx context.Context, call Call) Result {
	var a struct {
		Explanation string              `json:"explanation"`
		Plan        []protocol.PlanStep `json:"plan"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
		return failed("failed to parse function arguments: " + err.Error())
	}
	for _, s := range a.Plan {
		switch s.Status {
		case "pending", "in_progress", "completed":
		default:
			return failed("failed to parse function arguments: unknown status " + s.Status)
		}
	}
	err := call.Host.Record(ctx, &protocol.PlanUpdated{Call: call.ID, Explanation: a.Explanation, Plan: a.Plan})
	if err != nil {
		return notRun(ctx, err)
	}
	return Result{Output: protocol.ToolOutput{Output: "Plan updated"}}
}
