// Package metrics tells Prometheus of the portal: its requests, its event
// streams, and the pool as it is when it is asked.
//
// It changes nothing, and must not know who asks.
package metrics
