// Package metrics exports Prometheus metrics of the portal: its requests, its
// event streams, and the state of the pool at each scrape.
//
// It changes nothing.
package metrics
