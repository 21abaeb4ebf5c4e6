package protocol

import (
	"encoding/json"
	"errors"
)

type (
	// ElicitationRequested says that an MCP server asks the person something while a call
	// runs. It is open until there is an ElicitationResolved for it, which comes before the
	// output of the call.
	ElicitationRequested struct {
		Call    CallID `json:"call"`
		Number  int    `json:"number"` // 1, 2, … within the call
		Server  string `json:"server"`
		Message string `json:"message"`
		// Schema describes the answer: an object whose properties are strings, numbers,
		// booleans and choices.
		Schema json.RawMessage `json:"schema,omitempty"`
		URL    string          `json:"url,omitempty"` // in place of Schema: a page where the person answers
	}

	// ElicitationResolved says how the person answered.
	ElicitationResolved struct {
		Call    CallID            `json:"call"`
		Number  int               `json:"number"`
		Action  ElicitationAction `json:"action"`
		Content json.RawMessage   `json:"content,omitempty"` // an object, if it was accepted
		Cause   `json:"by,omitzero"`
	}

	// AnswerElicitation answers an open elicitation.
	AnswerElicitation struct {
		Call    CallID            `json:"call"`
		Number  int               `json:"number"`
		Action  ElicitationAction `json:"action"`
		Content json.RawMessage   `json:"content,omitempty"`
	}
)

// An ElicitationAction is the kind of answer to an elicitation.
type ElicitationAction string

// The answers. Cancel is also what the engine records when the call ended before anybody
// answered.
const (
	ElicitationAccept  ElicitationAction = "accept"
	ElicitationDecline ElicitationAction = "decline"
	ElicitationCancel  ElicitationAction = "cancel"
)

// Check reports what is wrong with an answer, whatever it answers.
func (a AnswerElicitation) Check() error {
	switch a.Action {
	case ElicitationAccept:
		var m map[string]any
		if len(a.Content) > 0 && (json.Unmarshal(a.Content, &m) != nil || m == nil) {
			return errors.New("the content of an answer must be a JSON object")
		}
	case ElicitationDecline, ElicitationCancel:
		if len(a.Content) > 0 {
			return errors.New("only an accepted elicitation has content")
		}
	default:
		return errors.New("the action of an answer must be accept, decline or cancel")
	}
	return nil
}

func (*ElicitationRequested) isBody() {}
func (*ElicitationResolved) isBody()  {}
func (AnswerElicitation) isOp()       {}
