package handlers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"weir/policies"
)

// journey is a browser's way to the provider and back, kept in its cookie
// alone: what is shown on the way is made of the cookie, all of it, so that
// nobody can change or invent a part, and no server has to remember it.
type journey struct {
	secret string
	until  time.Time
	next   string // the page to go to afterwards
}

const longestNext = 1500 // bytes; browsers keep cookies of 4096

func newJourney(until time.Time, next string) journey {
	if len(next) > longestNext {
		next = "/"
	}
	return journey{policies.NewSecret(), until, next}
}

// String is the cookie's value.
func (j journey) String() string {
	return j.secret + "." + strconv.FormatInt(j.until.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(j.next))
}

// readJourney reads a cookie's value; what is none has no secret.
func readJourney(cookie string) journey {
	parts := strings.Split(cookie, ".")
	if len(parts) != 3 || len(parts[0]) < 43 {
		return journey{}
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	next, nextErr := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || nextErr != nil {
		return journey{}
	}
	return journey{parts[0], time.Unix(until, 0), string(next)}
}

// pass is what the provider gets to see of it.
func (j journey) pass(origin string) policies.Pass {
	make := func(what string) string {
		mac := hmac.New(sha256.New, []byte(j.secret))
		mac.Write([]byte(what + " " + j.String()))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	return policies.Pass{Redirect: origin + returnPath, State: make("state"), Nonce: make("nonce"), Verifier: make("verifier")}
}
