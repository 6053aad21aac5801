package live

import (
	"strconv"
	"strings"
	"time"
)

const maxRemembered = 4096 // topics

// marks number the changes. A page is read before its stream begins; from the page's
// mark the stream finds the changes in between.
type marks struct {
	life      string           // distinguishes the marks of processes
	changes   int64            // so far
	last      map[string]int64 // per topic the number of its last change
	forgotten int64            // changes up to this number are not in last
}

func newMarks() marks {
	return marks{life: strconv.FormatInt(time.Now().UnixNano(), 36), last: map[string]int64{}}
}

// now is the current mark.
func (m *marks) now() string { return m.life + "." + strconv.FormatInt(m.changes, 10) }

// add notes one change of some topics. When there are too many topics to
// remember all are forgotten: older pages are then taken to have changed.
func (m *marks) add(topics []string) {
	m.changes++
	for _, topic := range topics {
		if len(m.last) >= maxRemembered {
			clear(m.last)
			m.forgotten = m.changes
		}
		m.last[topic] = m.changes
	}
}

// forget takes all topics to have changed.
func (m *marks) forget() {
	clear(m.last)
	m.changes++
	m.forgotten = m.changes
}

// after returns a function that reports whether a topic may have changed since a mark;
// without a mark, none has.
func (m *marks) after(mark string) func(topic string) bool {
	life, number, _ := strings.Cut(mark, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	unknown := err != nil || life != m.life || n < m.forgotten
	return func(topic string) bool { return mark != "" && (unknown || n < m.last[topic]) }
}
