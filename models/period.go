package models

import "time"

// What a notice of an end can be about.
const (
	EndOfProject = "project" // of its period of use
	EndOfMember  = "member"  // of a participation
)

// PeriodEnd is an end that people are told of before it comes.
type PeriodEnd struct {
	Kind      string // EndOfProject or EndOfMember
	ThingID   int64  // of the project or the member
	ProjectID int64
	UserID    int64  // of the member
	UserName  string // of the member
	EndsAt    time.Time
	Told      *int64 // how many days ahead the nearest notice was that was given of this end; nil: none was
}

// PeriodNotice notes that a notice of an end was given.
type PeriodNotice struct {
	Kind    string
	ThingID int64
	EndsAt  time.Time
	Days    int64 // ahead; 0 is at the end
	ToldAt  time.Time
}

// Term is until when a workspace may run, as far as that is known.
type Term struct {
	Until  *time.Time // participation deadline of its member; nil is open-ended
	EndsAt *time.Time // end of its project's period of use; nil is open-ended
}

// Extension is what somebody can do about an end of theirs that is near or
// over: ask for a later one, or set it.
type Extension struct {
	Kind      string // AskForPeriod or AskForDeadline
	ProjectID int64
	Project   string // its name
	MemberID  int64  // whose participation it is, for AskForDeadline
	EndsAt    time.Time
	Later     time.Time // the end to ask for
	Reason    Text      // why, unless something better is said
	Direct    bool      // may set the end without asking
	Pending   int64     // the request that asks for it already; 0: none does
	Own       bool      // that request is the reader's
}

// Asked is what the extension asks for.
func (e Extension) Asked() Asked {
	later := e.Later
	if e.Kind == AskForPeriod {
		return Asked{Period: &AskPeriod{ProjectID: e.ProjectID, EndsAt: &later}}
	}
	return Asked{Deadline: &AskDeadline{ProjectID: e.ProjectID, Until: &later}}
}

// Over tells whether the end has come.
func (e Extension) Over(now time.Time) bool { return !now.Before(e.EndsAt) }

// Moment words a moment in UTC: a bare date where it is the begin of a day.
func Moment(t time.Time) string {
	t = t.UTC()
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04 UTC")
}
