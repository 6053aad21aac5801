package models

import (
	"errors"
	"fmt"
)

// Kind sorts errors by what the caller can do about them. One place, in
// handlers, maps kinds to HTTP statuses.
type Kind string

const (
	KindInvalid         Kind = "invalid"         // the input breaks a rule; Fields names where
	KindUnauthenticated Kind = "unauthenticated" // nobody is signed in
	KindForbidden       Kind = "forbidden"       // the actor may see it but not do this
	KindNotFound        Kind = "not_found"       // does not exist, or is foreign: the two look alike
	KindConflict        Kind = "conflict"        // the state or version has moved on
	KindNoCapacity      Kind = "no_capacity"     // a quota, peak or device has too little left
	KindUnavailable     Kind = "unavailable"     // a part is down; trying again may help
	KindInternal        Kind = "internal"        // our fault; the user sees no detail
)

// Field is one input that was refused, and why.
type Field struct {
	Name   string `json:"name"`
	Reason Text   `json:"reason"`
}

// Error is the only error that crosses a service's boundary on purpose.
// Message and Fields are safe to show; Err is for the log alone.
type Error struct {
	Kind    Kind
	Message Text
	Fields  []Field
	Err     error
}

func (e *Error) Error() string {
	s := e.Message.String()
	for _, f := range e.Fields {
		s += fmt.Sprintf("; %s: %s", f.Name, f.Reason)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf tells an error's kind; anything that is not an *Error is internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
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
	return &Error{Kind: KindInvalid, Message: Say("Some of the input cannot be accepted."), Fields: fields}
}

// IgnoreNotFound is no error where one says that something is not there.
func IgnoreNotFound(err error) error {
	if KindOf(err) == KindNotFound {
		return nil
	}
	return err
}

// NotFound says that a thing does not exist for this actor. what is a noun
// such as "workspace".
func NotFound(what string) *Error {
	return &Error{Kind: KindNotFound, Message: Say("There is no such %s.", Say(what))}
}

// NotFoundAs turns not_found into a refusal of the field that named the thing.
func NotFoundAs(err error, refusal *Error) error {
	if KindOf(err) == KindNotFound {
		return refusal
	}
	return err
}

// Forbidden says that the actor may not do this.
func Forbidden(format string, args ...any) *Error {
	return &Error{Kind: KindForbidden, Message: Say(format, args...)}
}

// Conflict says that the thing is no longer as the caller believed.
func Conflict(format string, args ...any) *Error {
	return &Error{Kind: KindConflict, Message: Say(format, args...)}
}

// ErrStale is inside the Conflict of a change to a version that is no longer
// the present one.
var ErrStale = errors.New("stale version")

// CheckVersion refuses a change that was made from an older version than the
// present one; read 0 means that the caller does not mind.
func CheckVersion(what string, read, present int64) error {
	if read == 0 || read == present {
		return nil
	}
	return stale(what)
}

func stale(what string) error {
	e := Conflict("This %s was changed by somebody else in the meantime. Load it again and repeat the change.", Say(what))
	e.Err = ErrStale
	return e
}

// NoCapacity says what was exceeded and what is left.
func NoCapacity(field, format string, args ...any) *Error {
	e := &Error{Kind: KindNoCapacity, Message: Say(format, args...)}
	if field != "" {
		e.Fields = []Field{{Name: field, Reason: e.Message}}
	}
	return e
}

// Unavailable says which part is down; err goes to the log.
func Unavailable(err error, format string, args ...any) *Error {
	return &Error{Kind: KindUnavailable, Message: Say(format, args...), Err: err}
}

// Problems gathers refused fields while an input is checked.
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
