package live

import (
	"strconv"
	"strings"
	"time"
)

const maxTopics = 4096 // topics

// changeLog numbers the changes. A page is read before its stream begins; from the page's
// cursor the stream finds the changes in between.
type changeLog struct {
	instance  string           // distinguishes the cursors of processes
	changes   int64            // so far
	last      map[string]int64 // per topic the number of its last change
	forgotten int64            // changes up to this number are not in last
}

func newChangeLog() changeLog {
	return changeLog{instance: strconv.FormatInt(time.Now().UnixNano(), 36), last: map[string]int64{}}
}

// cursor is the current mark.
func (m *changeLog) cursor() string { return m.instance + "." + strconv.FormatInt(m.changes, 10) }

// add notes one change of some topics. When there are too many topics to
// remember all are forgotten: older pages are then taken to have changed.
func (m *changeLog) add(topics []string) {
	m.changes++
	for _, topic := range topics {
		if len(m.last) >= maxTopics {
			clear(m.last)
			m.forgotten = m.changes
		}
		m.last[topic] = m.changes
	}
}

// invalidate takes all topics to have changed.
func (m *changeLog) invalidate() {
	clear(m.last)
	m.changes++
	m.forgotten = m.changes
}

// after returns a function that reports whether a topic may have changed since a mark;
// without a mark, none has.
func (m *changeLog) after(cursor string) func(topic string) bool {
	instance, number, _ := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	unknown := err != nil || instance != m.instance || n < m.forgotten
	return func(topic string) bool { return cursor != "" && (unknown || n < m.last[topic]) }
}
