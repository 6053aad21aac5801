// Package notifications lets people read what they were told, and tells it further:
// to webhooks, signed, and by e-mail. What has to go out is written in the
// transaction of what it tells of (see [weir/models.Queries.Tell]); a loop on
// the leading server sends it afterwards, again and again until it arrives or
// a day has passed.
//
// It must not know what the notices are about, nor the portal's own HTTP.
package notifications
