package models

import "strings"

// Kinds of notifications. A new kind belongs into NotificationKinds too.
const (
	NotificationWorkspaceScheduled = "workspace.scheduled"
	NotificationWorkspaceStarted   = "workspace.started"
	NotificationWorkspaceEnding    = "workspace.ending"
	NotificationWorkspaceIdle      = "workspace.idle"
	NotificationWorkspaceStopped   = "workspace.stopped"
	NotificationWorkspaceFailed    = "workspace.failed"
	NotificationAccessWithdrawn    = "workspace.access-withdrawn"
	NotificationRunScheduled       = "run.scheduled"
	NotificationRunEnded           = "run.ended"
	NotificationProviderLost       = "provider.lost"
	NotificationProviderReturned   = "provider.returned"
	NotificationQuotaNearlyUsed    = "quota.nearly-used"
	NotificationRequestAsked       = "request.asked"
	NotificationInvitationRefused  = "invitation.refused"
	NotificationHandoverGiven      = "handover.given"
	NotificationHandoverEnded      = "handover.ended"
	NotificationPeriodEnding       = "period.ending"
	NotificationPeriodEnded        = "period.ended"
	NotificationDeadlineEnding     = "deadline.ending"
	NotificationDeadlineEnded      = "deadline.ended"
	NotificationDeadlineMembers    = "deadline.members"
	NotificationReservationActive  = "reservation.active"
	NotificationReservationExpired = "reservation.expired"
	NotificationReservationMoved   = "reservation.moved"
	NotificationReservationAtRisk  = "reservation.at-risk"
	NotificationReservationEnding  = "reservation.ending"
	NotificationReservationEnded   = "reservation.ended"
	NotificationStorageExceeded    = "storage.exceeded"
	NotificationSecondFactor       = "account.second-factor"

	// About sending itself; no webhook can subscribe to them.
	NotificationTest    = "test"
	NotificationGivenUp = "webhook.given-up"
)

// NotificationOfRequest is the kind that notifies the requester of a decision.
func NotificationOfRequest(s RequestState) string { return "request." + string(s) }

// NotificationKinds are the kinds that webhooks can subscribe to.
var NotificationKinds = []string{
	NotificationWorkspaceScheduled, NotificationWorkspaceStarted, NotificationWorkspaceEnding,
	NotificationWorkspaceIdle, NotificationWorkspaceStopped, NotificationWorkspaceFailed, NotificationAccessWithdrawn,
	NotificationRunScheduled, NotificationRunEnded,
	NotificationProviderLost, NotificationProviderReturned, NotificationQuotaNearlyUsed,
	NotificationRequestAsked,
	NotificationOfRequest(RequestApproved), NotificationOfRequest(RequestAdjusted), NotificationOfRequest(RequestRefused),
	NotificationInvitationRefused, NotificationHandoverGiven, NotificationHandoverEnded,
	NotificationPeriodEnding, NotificationPeriodEnded, NotificationDeadlineEnding, NotificationDeadlineEnded, NotificationDeadlineMembers,
	NotificationReservationActive, NotificationReservationExpired, NotificationReservationMoved, NotificationReservationAtRisk,
	NotificationReservationEnding, NotificationReservationEnded, NotificationStorageExceeded,
	NotificationSecondFactor,
}

// Warnings are the kinds that tell of what comes. No change that is audited and no event
// of a workspace tells the same.
var Warnings = []string{
	NotificationWorkspaceIdle, NotificationQuotaNearlyUsed, NotificationStorageExceeded, NotificationPeriodEnding, NotificationDeadlineEnding,
	NotificationReservationEnding,
}

// Selects reports whether what a webhook subscribes to, a kind or a prefix of kinds
// with a star, selects a kind.
func Selects(subscription, kind string) bool {
	prefix, open := strings.CutSuffix(subscription, "*")
	return subscription == kind || open && strings.HasPrefix(kind, prefix)
}
