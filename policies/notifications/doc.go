// Package notifications is each person's inbox, and sends what stands in it
// on: to webhooks, signed, and by e-mail. A delivery is written in the
// transaction of what it tells of (see [weir/models.Queries.Notify]); a loop on
// the leading server sends it afterwards, again and again until it arrives or
// a day has passed.
//
// It must not know what the notifications are about, nor the portal's own
// HTTP.
package notifications
