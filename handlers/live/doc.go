// Package live tells browsers which topics have changed, over server-sent
// events: a stream for each page that is open, on which nothing is told but
// names. What has changed the page fetches, with its own rights.
//
// It asks whether somebody may follow a topic, and must not know why.
package live
