// Package notifications manages the notifications of each account, and delivers
// them to webhooks, signed, and by email. A delivery is written in the
// transaction of its event (see [weir/models/store.Queries.Notify]). The leader sends
// it afterwards, and retries until it succeeds or a day has passed.
//
// It must not know what the notifications are about, nor the portal's own
// HTTP.
package notifications
