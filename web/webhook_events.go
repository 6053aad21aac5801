package web

import (
	"context"
	"slices"
	"strings"

	"weir/models"
)

// eventWords are what the kinds of notifications tell, below the title of their group.
var eventWords = map[string]models.Text{
	models.NotificationWorkspaceScheduled: models.Say("leaves the queue"),
	models.NotificationWorkspaceStarted:   models.Say("is running"),
	models.NotificationWorkspaceEnding:    models.Say("will be stopped"),
	models.NotificationWorkspaceIdle:      models.Say("is idle and will be stopped"),
	models.NotificationWorkspaceStopped:   models.Say("has stopped"),
	models.NotificationWorkspaceFailed:    models.Say("has failed"),
	models.NotificationAccessWithdrawn:    models.Say("loses access to a directory"),

	models.NotificationRunScheduled: models.Say("leaves the queue"),
	models.NotificationRunEnded:     models.Say("has ended"),

	models.NotificationProviderLost:     models.Say("is unreachable"),
	models.NotificationProviderReturned: models.Say("is reachable again"),
	models.NotificationQuotaNearlyUsed:  models.Say("is nearly used"),
	models.NotificationStorageExceeded:  models.Say("is exceeded"),

	models.NotificationRequestAsked:                      models.Say("was submitted"),
	models.NotificationOfRequest(models.RequestApproved): models.Say("was approved"),
	models.NotificationOfRequest(models.RequestAdjusted): models.Say("was approved with changes"),
	models.NotificationOfRequest(models.RequestRefused):  models.Say("was rejected"),
	models.NotificationInvitationRefused:                 models.Say("could not be accepted"),
	models.NotificationHandoverGiven:                     models.Say("has begun"),
	models.NotificationHandoverEnded:                     models.Say("has ended"),
	models.NotificationPeriodEnding:                      models.Say("ends soon"),
	models.NotificationPeriodEnded:                       models.Say("has ended"),
	models.NotificationDeadlineEnding:                    models.Say("ends soon"),
	models.NotificationDeadlineEnded:                     models.Say("has ended"),
	models.NotificationDeadlineMembers:                   models.Say("several of a project end within a day"),
	models.NotificationReservationActive:                 models.Say("has begun"),
	models.NotificationReservationExpired:                models.Say("was not used"),
	models.NotificationReservationMoved:                  models.Say("was moved"),
	models.NotificationReservationAtRisk:                 models.Say("may not be usable any more"),
	models.NotificationReservationEnding:                 models.Say("ends soon"),
	models.NotificationReservationEnded:                  models.Say("has ended"),
	models.NotificationSecondFactor:                      models.Say("second factor changed or used"),
}

// eventGroups are the titles of the groups of kinds, by what is before their dot.
var eventGroups = map[string]models.Text{
	"workspace": models.Say("Workspaces"), "run": models.Say("Runs"), "provider": models.Say("Machines"),
	"quota":   models.Say("Quota of a project"),
	"request": models.Say("Requests"), "invitation": models.Say("Invitations"), "handover": models.Say("Handovers"),
	"period": models.Say("Period of use"), "deadline": models.Say("Memberships"), "reservation": models.Say("Reservations"),
	"storage": models.Say("Storage"), "account": models.Say("Accounts"),
}

// eventGroup are the events of a kind of object that a webhook can subscribe to.
type eventGroup struct {
	Title string
	Boxes []eventBox
}

// eventBox subscribes to one kind of event, or to all with a prefix.
type eventBox struct {
	Event string
	Label string
	On    bool
}

// eventChoices are all events, with those ticked that the form selects. A prefix that is
// none of a group has a box of its own.
func eventChoices(ctx context.Context, f Form) (groups []eventGroup) {
	chosen := strings.Fields(f.Value("events"))
	box := func(event, label string) eventBox {
		i := slices.Index(chosen, event)
		if i >= 0 {
			chosen = slices.Delete(chosen, i, i+1)
		}
		return eventBox{event, label, i >= 0}
	}
	last := ""
	for _, kind := range models.NotificationKinds {
		object, _, _ := strings.Cut(kind, ".")
		if object != last {
			groups = append(groups, eventGroup{TT(ctx, eventGroups[object]), []eventBox{box(object+".*", T(ctx, "all"))}})
			last = object
		}
		g := &groups[len(groups)-1]
		g.Boxes = append(g.Boxes, box(kind, TT(ctx, eventWords[kind])))
	}
	if len(chosen) > 0 {
		others := eventGroup{Title: T(ctx, "Others")}
		for _, event := range slices.Clone(chosen) {
			others.Boxes = append(others.Boxes, box(event, ""))
		}
		groups = append(groups, others)
	}
	return groups
}
