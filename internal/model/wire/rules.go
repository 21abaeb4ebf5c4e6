package wire

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// Error makes a typed error of what a service said.
func (c Complaint) Error() *protocol.Error {
	e := &protocol.Error{Message: c.Message, After: c.After}
	if e.Message == "" {
		e.Message = "the model service failed"
		if c.Status != 0 {
			e.Message = fmt.Sprintf("the model service answered %d %s", c.Status, http.StatusText(c.Status))
		}
	}
	for _, rule := range rules {
		if rule.when(c) {
			rule.then(c, e)
			break
		}
	}
	if !e.Retry && e.Kind != protocol.ErrorUsageLimit {
		e.After = 0
	}
	if e.Hint == "" && e.After > 0 {
		e.Hint = "the service can be tried again in " + e.After.Round(time.Second).String()
	}
	return e
}

// withStatus puts the status before a message that names neither type nor code: such a text often is a proxy's,
// and does not say what is wrong.
func (c Complaint) withStatus(message string) string {
	if c.Status == 0 || c.Message == "" || c.Type != "" || c.Code != "" && c.Code != fmt.Sprint(c.Status) {
		return message
	}
	return fmt.Sprintf("the model service answered %d %s: %s", c.Status, http.StatusText(c.Status), message)
}

// kind is what a rule with a fixed outcome does.
func kind(k protocol.ErrorKind, hint string) func(Complaint, *protocol.Error) {
	return func(_ Complaint, e *protocol.Error) { e.Kind, e.Hint = k, hint }
}

type rule struct {
	when func(Complaint) bool
	then func(Complaint, *protocol.Error)
}

// rules turn a complaint into an error; the first that fits counts.
var rules = []rule{
	{
		func(c Complaint) bool { return c.fault() != nil },
		func(c Complaint, e *protocol.Error) { e.Kind, e.Call = protocol.ErrorHistory, c.fault() },
	},
	{
		func(c Complaint) bool { return c.refusedPart() != "" },
		func(c Complaint, e *protocol.Error) { e.Kind, e.Part = protocol.ErrorHistory, c.refusedPart() },
	},
	{
		Complaint.overflow,
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Hint = protocol.ErrorContextLength, "compact the conversation, or use a model with a larger context window"
			e.Window = c.window()
		},
	},
	{Complaint.usageLimit, usageLimit},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusTooManyRequests || c.is("rate_limit_exceeded", "rate_limit_error", "too_many_requests")
		},
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Retry = protocol.ErrorRateLimit, true
			if e.After == 0 {
				e.After = waitIn(c.Message)
			}
			if e.After > 0 {
				e.Hint = liftedIn(e.After)
			}
			e.Message = c.withStatus(e.Message)
		},
	},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusUnauthorized || c.Status == http.StatusForbidden || c.is("invalid_api_key", "authentication_error", "permission_error")
		},
		kind(protocol.ErrorAuth, "check the API key of this provider"),
	},
	{
		func(c Complaint) bool {
			return c.is("model_not_found") || c.Status == http.StatusNotFound && c.says("model") || c.Status == http.StatusBadRequest && c.noSuchModel()
		},
		kind(protocol.ErrorUnknownModel, "check the name of the model, or choose another with -m"),
	},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusNotFound || c.Status == http.StatusMethodNotAllowed
		},
		kind(protocol.ErrorRequest, "check base_url and wire_api of this provider"),
	},
	{
		func(c Complaint) bool { return c.is("tool_use_failed") }, // Groq: the model wrote a call that it could not read
		func(_ Complaint, e *protocol.Error) { e.Kind, e.Retry = protocol.ErrorModel, true },
	},
	{
		func(c Complaint) bool {
			return c.Status == 0 && !c.is("invalid_request_error", "invalid_prompt", "content_filter", "content_policy_violation") || c.Status >= 500 ||
				c.Status == http.StatusRequestTimeout || c.Status == http.StatusConflict
		},
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Retry = protocol.ErrorModel, true
			e.Message = c.withStatus(e.Message)
		},
	},
	{func(Complaint) bool { return true }, kind(protocol.ErrorRequest, "")},
}

// usageLimit reports whether nothing is left to spend.
func (c Complaint) usageLimit() bool {
	return c.is("usage_limit_reached", "usage_not_included", "insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active") ||
		c.Status == http.StatusPaymentRequired || c.says("credit balance is too low", "insufficient balance", "insufficient credits", "exceeded your current quota") ||
		c.Status == http.StatusTooManyRequests && c.Resets > longLimit
}

// longLimit is how far away a reset must be to be one of a plan and not of a rate.
const longLimit = 2 * time.Minute

func usageLimit(c Complaint, e *protocol.Error) {
	e.Kind, e.Hint = protocol.ErrorUsageLimit, "check your plan and billing"
	switch wait := waitIn(c.Message); {
	case c.Resets > 0:
		e.After = c.Resets
	case wait > 0:
		e.After = wait
	case e.After < longLimit: // of a rate, which is not what is used up
		e.After = 0
	}
	if e.After > 0 {
		e.Hint = liftedIn(e.After)
	}
	if c.Status == http.StatusTooManyRequests || c.Status == http.StatusPaymentRequired {
		e.Message = c.withStatus(e.Message)
	}
}

func liftedIn(wait time.Duration) string {
	return "the limit is lifted in " + wait.Round(time.Second).String()
}

func (c Complaint) noSuchModel() bool {
	return c.says("model") && c.says("does not exist", "not found", "not a valid model", "unknown model", "model_not_found", "no such model")
}
