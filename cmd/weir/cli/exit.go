package cli

import (
	"errors"
	"net/http"
	"strings"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
)

// Exit codes that scripts can rely on.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2 // the command line or the configuration is wrong

	ExitRefused     = 3 // not permitted; of an agent: it was revoked, and starting it again does not help
	ExitNotFound    = 4
	ExitConflict    = 5 // not possible in the present state, or changed meanwhile
	ExitUnreachable = 6 // the server cannot be reached, cannot answer now, or is no portal
)

// exitError is an error with an exit code.
type exitError struct {
	error
	code int
	kind models.Kind // of what the server has said; empty: nothing
}

func (e *exitError) Unwrap() error { return e.error }

// WithExitCode gives an error of a command an exit code.
func WithExitCode(err error, code int) error { return &exitError{err, code, ""} }

// reportedKind is the kind of an error that the server has reported; empty for others.
func reportedKind(err error) models.Kind {
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.kind
	}
	return ""
}

// programExit is the result of a program that a command has run, with its exit code and
// without a message.
func programExit(code int) error {
	if code == ExitOK {
		return nil
	}
	return WithExitCode(errors.New(""), code)
}

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	usage, coded := (*config.UsageError)(nil), (*exitError)(nil)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &coded):
		return coded.code
	default:
		return ExitError
	}
}

// refusal is an error that the server has reported.
func refusal(status int, p handlers.Problem) error {
	text := p.Detail
	if status == http.StatusUnauthorized {
		text = "the server rejected the access token: it is invalid, expired or revoked"
	}
	if len(p.Errors) == 1 && p.Errors[0].Reason == text {
		text, p.Errors = strings.TrimPrefix(p.Errors[0].Field+": ", ": ")+text, nil
	}
	for _, f := range p.Errors {
		text += "\n  " + strings.TrimPrefix(f.Field+": ", ": ") + f.Reason
	}
	code := ExitError
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		code = ExitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		code = ExitRefused
	case http.StatusNotFound:
		code = ExitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		code = ExitConflict
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusInsufficientStorage:
		code = ExitUnreachable
	}
	return &exitError{errors.New(clean(text, '\n')), code, p.Kind}
}
