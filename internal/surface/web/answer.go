package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
)

// A problem is the answer to a request that was not carried out.
type problem struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	} `json:"error"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	var e problem
	e.Error.Code, e.Error.Message = code, message
	answer(w, status, e)
}

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client has left
}

// kinds of error of the engine, with what they are in HTTP.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{engine.ErrNotFound, http.StatusNotFound, "not_found"},
	{engine.ErrNothingToStop, http.StatusConflict, "nothing_to_stop"},
	{engine.ErrNoApproval, http.StatusConflict, "no_approval"},
	{engine.ErrNoInput, http.StatusConflict, "no_input"},
	{engine.ErrNotReturned, http.StatusConflict, "not_returned"},
	{engine.ErrNoBackground, http.StatusConflict, "no_background"},
	{engine.ErrBusy, http.StatusConflict, "busy"},
	{engine.ErrRevert, http.StatusConflict, "revert"},
	{engine.ErrEmpty, http.StatusBadRequest, "empty"},
	{engine.ErrWhenBusy, http.StatusBadRequest, "when_busy"},
	{engine.ErrSteerSettings, http.StatusBadRequest, "steer_settings"},
	{engine.ErrDecision, http.StatusBadRequest, "decision"},
	{engine.ErrClosed, http.StatusServiceUnavailable, "closed"},
}

// failed answers with an error of the engine or the application.
func failed(w http.ResponseWriter, err error) {
	var field *engine.FieldError
	var locked *engine.LockedError
	var people *app.Error
	var e problem
	status, code := http.StatusInternalServerError, "internal"
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			status, code = k.status, k.code
		}
	}
	switch {
	case errors.As(err, &field):
		status, code = http.StatusBadRequest, "field"
	case errors.As(err, &locked):
		status, code = http.StatusConflict, "locked"
		e.Error.Hint = "another process has the conversation open; stop it, or use it there"
	case errors.As(err, &people):
		e.Error.Hint = people.Hint
		if code == "internal" {
			status, code = http.StatusConflict, "refused"
		}
	}
	e.Error.Code, e.Error.Message = code, err.Error()
	answer(w, status, e)
}

// body reads the JSON of a request. It answers by itself if there is something wrong with it.
func body(w http.ResponseWriter, r *request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more than one value")
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", "the request is too large")
		return false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "json", "read the request: "+err.Error())
		return false
	}
	return true
}
