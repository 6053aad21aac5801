package models

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind classifies errors by what the caller can do about them.
type Kind string

const (
	KindInvalid         Kind = "invalid"         // the input breaks a rule; see Fields
	KindUnauthenticated Kind = "unauthenticated" // not signed in
	KindForbidden       Kind = "forbidden"       // the actor may see it but not do this
	KindNotFound        Kind = "not_found"       // does not exist, or the actor may not see it
	KindConflict        Kind = "conflict"        // the state or version has changed
	KindNoCapacity      Kind = "no_capacity"     // a quota, limit or device has too little left
	KindRateLimited     Kind = "rate_limited"    // too many attempts; see RetryAfter
	KindUnavailable     Kind = "unavailable"     // a part is down; retrying may help
	KindInternal        Kind = "internal"        // a bug or a failure; the user sees no detail
)

// Status is the HTTP status of errors of this kind.
func (k Kind) Status() int {
	switch k {
	case KindInvalid:
		return http.StatusUnprocessableEntity
	case KindUnauthenticated:
		return http.StatusUnauthorized
	case KindForbidden:
		return http.StatusForbidden
	case KindNotFound:
		return http.StatusNotFound
	case KindConflict, KindNoCapacity:
		return http.StatusConflict
	case KindRateLimited:
		return http.StatusTooManyRequests
	case KindUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Field is an input field that was refused, with the reason.
type Field struct {
	Name   string `json:"name"`
	Reason Text   `json:"reason"`
}

// Error is the only error that services return on purpose. Message and Fields
// are safe to show; Err is for the log only.
type Error struct {
	Kind    Kind
	Message Text
	Fields  []Field
	Err     error

	Scope      TokenScope    // what the access token lacks; empty otherwise
	RetryAfter time.Duration // after which a retry can succeed; 0: unknown
	NoSpace    bool          // a disk is full; the kind is KindUnavailable
}

// Status is the HTTP status of the error: that of its kind, or 507 if a disk is full
// (RFC 4918 section 11.5).
func (e *Error) Status() int {
	if e.NoSpace {
		return http.StatusInsufficientStorage
	}
	return e.Kind.Status()
}

func (e *Error) Error() string {
	s := e.Message.String()
	if len(e.Fields) > 0 {
		s = strings.TrimSuffix(s, ".")
	}
	for _, f := range e.Fields {
		s += fmt.Sprintf("; %s: %s", f.Name, f.Reason)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns an error's kind, or "" for nil; anything that is not an *Error is
// internal.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// Invalid refuses one field of the input.
func Invalid(field, format string, args ...any) *Error {
	return InvalidFields(Field{Name: field, Reason: Say(format, args...)})
}

// InvalidFields refuses several fields at once.
func InvalidFields(fields ...Field) *Error {
	return &Error{Kind: KindInvalid, Message: Say("Some fields are invalid."), Fields: fields}
}

// IgnoreNotFound returns nil for a NotFound, and other errors unchanged.
func IgnoreNotFound(err error) error {
	if KindOf(err) == KindNotFound {
		return nil
	}
	return err
}

// NotFound means that a thing does not exist for this actor. what is a noun such
// as "workspace".
func NotFound(what string) *Error {
	return &Error{Kind: KindNotFound, Message: Say("The %s was not found.", Say(what))}
}

// NotFoundAs turns not_found into a refusal of the field that named the thing.
func NotFoundAs(err error, refusal *Error) error {
	if KindOf(err) == KindNotFound {
		return refusal
	}
	return err
}

// RateLimited means that there were too many attempts; another one can be made after
// wait.
func RateLimited(wait time.Duration, format string, args ...any) *Error {
	return &Error{Kind: KindRateLimited, Message: Say(format, args...), RetryAfter: wait}
}

// Forbidden means that the actor may not do this.
func Forbidden(format string, args ...any) *Error {
	return &Error{Kind: KindForbidden, Message: Say(format, args...)}
}

// InsufficientScope means that the actor's access token does not have a scope.
func InsufficientScope(s TokenScope) *Error {
	e := Forbidden("This needs an access token with the scope %s.", string(s))
	e.Scope = s
	return e
}

// Conflict means that the state of the thing does not allow this, or has
// changed.
func Conflict(format string, args ...any) *Error {
	return &Error{Kind: KindConflict, Message: Say(format, args...)}
}

// ConflictAt is a Conflict that names a field.
func ConflictAt(field string, reason, message Text) *Error {
	return &Error{Kind: KindConflict, Message: message, Fields: []Field{{Name: field, Reason: reason}}}
}

// ErrStale is inside the Conflict of a change to an old version.
var ErrStale = errors.New("stale version")

// CheckVersion refuses a change that is based on an old version; read 0 accepts
// any version.
func CheckVersion(what string, read, present int64) error {
	if read == 0 || read == present {
		return nil
	}
	return Stale(what)
}

// Stale is the Conflict of a change to an old version of what is named.
func Stale(what string) error {
	e := Conflict("This %s was changed by someone else. Reload it and try again.", Say(what))
	e.Err = ErrStale
	return e
}

// NoCapacity means that a limit, quota or capacity was exceeded; the message
// contains the remaining amount.
func NoCapacity(field, format string, args ...any) *Error {
	e := &Error{Kind: KindNoCapacity, Message: Say(format, args...)}
	if field != "" {
		e.Fields = []Field{{Name: field, Reason: e.Message}}
	}
	return e
}

// Unavailable means that a part is down; err goes to the log.
func Unavailable(err error, format string, args ...any) *Error {
	return &Error{Kind: KindUnavailable, Message: Say(format, args...), Err: err}
}

// NoSpace means that a disk is full; err goes to the log.
func NoSpace(err error, format string, args ...any) *Error {
	e := Unavailable(err, format, args...)
	e.NoSpace = true
	return e
}

// Problems collects refused fields while an input is checked.
type Problems []Field

// Add refuses one field.
func (p *Problems) Add(field, format string, args ...any) {
	*p = append(*p, Field{Name: field, Reason: Say(format, args...)})
}

// Err is nil when nothing was refused.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return InvalidFields(p...)
}
