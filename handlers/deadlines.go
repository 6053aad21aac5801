package handlers

import (
	"net/http"
	"time"
)

// bodyReadTimeout is how long a client may take to send a body.
const bodyReadTimeout = 30 * time.Second

// longestWork is how long the work on a request can take whose body was not read.
const longestWork = 15 * time.Minute

// extendReadDeadline is called when work on a request begins, which net/http would cancel at the
// deadline for reading it, as if its client had gone. Only a body that is still to be read needs one:
// a download takes as long as it takes.
func extendReadDeadline(connection *http.ResponseController, allRead bool) {
	deadline := time.Time{}
	if !allRead {
		deadline = time.Now().Add(longestWork)
	}
	_ = connection.SetReadDeadline(deadline) // a test's recorder has no connection
}
