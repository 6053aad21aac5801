package models

import "time"

// Kinds of ends.
const (
	EndOfProject = "project" // of its period of use
	EndOfMember  = "member"  // of a membership
)

// PeriodEnd is an end of which people are notified in advance.
type PeriodEnd struct {
	Kind         string // EndOfProject or EndOfMember
	ThingID      int64  // of the project or the member
	ProjectID    int64
	UserID       int64  // of the member
	UserName     string // of the member
	EndsAt       time.Time
	NotifiedDays *int64 // how many days ahead the last notification was; nil: none was sent
}

// PeriodNotification records that a notification of an end was sent.
type PeriodNotification struct {
	Kind       string
	ThingID    int64
	EndsAt     time.Time
	Days       int64 // ahead; 0 is at the end
	NotifiedAt time.Time
}

// Term is until when a workspace may run.
type Term struct {
	Until  *time.Time // end of its membership; nil is open-ended
	EndsAt *time.Time // end of its project's period of use; nil is open-ended
}

// Extension describes how a user can extend an end that is near or over: by a
// request, or directly.
type Extension struct {
	Kind      string // RequestPeriod or RequestDeadline
	ProjectID int64
	Project   string // its name
	MemberID  int64  // whose membership it is, for RequestDeadline
	EndsAt    time.Time
	Later     time.Time // the end to request
	Reason    Text      // suggested reason
	Direct    bool      // the user may set the end without a request
	Pending   int64     // id of the pending request for it; 0: none
	Own       bool      // that request is the user's
}

// Requested is the request for the extension.
func (e Extension) Requested() Requested {
	if e.Kind == RequestPeriod {
		return Requested{Period: &PeriodSpec{ProjectID: e.ProjectID, EndsAt: new(e.Later)}}
	}
	return Requested{Deadline: &DeadlineSpec{ProjectID: e.ProjectID, Until: new(e.Later)}}
}

// Over reports whether the end has come.
func (e Extension) Over(now time.Time) bool { return !now.Before(e.EndsAt) }

// LastDay is the last day, in UTC, before an exclusive end.
func LastDay(end time.Time) time.Time { return Day(end.Add(-time.Nanosecond)) }

// AfterDay is the exclusive end of a period with this last day.
func AfterDay(last time.Time) time.Time { return Day(last).AddDate(0, 0, 1) }

// EndMoment is an exclusive end in a Text, midnight as the day before.
func EndMoment(end time.Time) Instant {
	if last := LastDay(end); end.Equal(AfterDay(last)) {
		return Moment(last)
	}
	return Moment(end)
}
