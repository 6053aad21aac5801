package live

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	keepAlive = 8 * time.Second // from one sign of life of a stream to the next
	// takeTime is how long a reader may take nothing before it is dropped. It is
	// shorter than the others of the portal wait for a server that is silent.
	takeTime = keepAlive / 2
	// spare is how many events may wait for a reader beside one of each topic.
	spare = 8
)

// Frames other than events.
var (
	greeting = []byte(": weir\nretry: 2000\n\n") // browsers reconnect after 2 s
	alive    = []byte(": alive\n\n")
)

// A change that many streams are told of is followed by as many requests. An event before
// it tells over how many ms to spread them, so that they come at about this rate. Few
// streams need not be told.
const (
	requestsPerSecond = 1000
	fewStreams        = 250
)

// eventOf is the event of a topic's change, for so many streams.
func eventOf(topic string, streams int) []byte {
	change := "event: change\ndata: " + topic + "\n\n"
	if streams > fewStreams {
		change = "event: jitter\ndata: " + strconv.Itoa(streams*1000/requestsPerSecond) + "\n\n" + change
	}
	return []byte(change)
}

// connection is the part of [net.Conn] that a stream uses.
type connection interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// Stream is one reader's event stream.
type Stream struct {
	follower *follower

	// By the hub's lock.
	conn    connection // nil until the response's head is written
	pending [][]byte   // to send: first the greeting, and what has changed since the page was read
	sending bool       // a goroutine sends; most streams are idle, and have none
	ended   bool
	watched uint64 // by departures, under this number
}

func send(conn connection, holds func() bool, b []byte) error {
	if !holds() {
		return io.ErrClosedPipe
	}
	if err := conn.SetWriteDeadline(time.Now().Add(takeTime)); err != nil {
		return err
	}
	_, err := conn.Write(b)
	return err
}

// follower is an actor with topics, possibly in several windows, which share one
// permission check.
type follower struct {
	followerKey
	topics  []string // sorted
	slot    int      // the step of a beat in which it is looked after
	streams map[*Stream]bool
}

type followerKey struct {
	user, generation     int64
	session, via, topics string
	byProvider           bool
}

// dependsOn reports whether one of the revocation keys affects the follower; see
// [models.RevocationListener]. The rights to some topics depend on a project that is not among them.
func (f *follower) dependsOn(keys map[string]bool, ofProject bool) bool {
	return keys[store.RevocationKey("user", f.user)] || keys[store.SessionKey(f.session)] ||
		slices.ContainsFunc(f.topics, func(topic string) bool { return keys[topic] || ofProject && isInProject(topic) })
}

// isInProject reports whether a topic is of something in a project.
func isInProject(topic string) bool {
	kind, _, ofOne := strings.Cut(topic, ":")
	return ofOne && kind != "project" && kind != "user"
}

// actor identifies the follower for a permission check.
func (f *follower) actor() policies.Actor {
	return policies.Actor{User: models.User{ID: f.user, SessionGeneration: f.generation}, Session: f.session, Via: f.via,
		ByProvider: f.byProvider}
}
