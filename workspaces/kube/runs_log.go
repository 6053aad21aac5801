package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models"
)

const (
	readerLease  = 15 * time.Second       // without a Poll, until a reader ends: another server polls
	readAgain    = 100 * time.Millisecond // after the end of a stream
	longestPause = 3 * time.Second        // after errors, which follow each other with growing pauses
	logPatience  = 30 * time.Second       // with the log of a run that has ended
	logReadBlock = 64 << 10
)

// logReader copies the log of a pod to the files of its run while the run is polled. It
// continues where another one has ended. A piece of the output always goes to the same
// place, so two readers do no harm.
type logReader struct {
	*Runs
	id       ref
	pod      *corev1.Pod
	cancel   context.CancelFunc
	lease    *time.Timer
	complete chan struct{} // closed when everything was read
}

// follow reads the log of a pod from now on.
func (r *Runs) follow(id ref, pod *corev1.Pod) *logReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reader, ok := r.readers[pod.UID]; ok && reader.lease.Reset(readerLease) {
		return reader
	}
	ctx, cancel := context.WithCancel(r.ctx)
	reader := &logReader{Runs: r, id: id, pod: pod, cancel: cancel, lease: time.AfterFunc(readerLease, cancel), complete: make(chan struct{})}
	r.readers[pod.UID] = reader
	r.wg.Go(func() { reader.read(ctx) })
	return reader
}

// logComplete reports whether all output of a pod that has ended is kept, or no more of it
// can be had.
func (r *Runs) logComplete(id ref, pod *corev1.Pod) bool {
	t := containerOf(pod).State.Terminated
	if t == nil || r.ctx.Err() != nil { // it has not begun
		return t == nil
	}
	select {
	case <-r.follow(id, pod).complete:
		return true
	default:
		m, now := r.cluster.pods.entry(pod.UID), r.cluster.now()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.endedAt.IsZero() {
			m.endedAt = now
		}
		return now.Sub(m.endedAt) >= logPatience
	}
}

// read reads until everything was read or ctx ends.
func (l *logReader) read(ctx context.Context) {
	pause := readAgain
	for ctx.Err() == nil {
		over := l.over()
		err := l.copy(ctx, !over)
		if err != nil {
			pause = min(2*pause, longestPause)
		} else {
			pause = readAgain
		}
		switch {
		case err == nil && over:
			close(l.complete)
			l.Changed(l.id.Workspace)
			return
		case err != nil && ctx.Err() == nil:
			l.cluster.log.DebugContext(ctx, "cannot read the log of a run", "pod", l.pod.Name, "namespace", l.pod.Namespace, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// over reports whether the command has ended, so that its log is complete.
func (l *logReader) over() bool {
	pod, err := l.cluster.podLister.Pods(l.id.Namespace).Get(l.id.Pod)
	return err == nil && podEnded(pod)
}

// copy copies the log from the cursor on, and what is added meanwhile if it is to follow.
func (l *logReader) copy(ctx context.Context, follow bool) error {
	c, err := l.cursor(l.id)
	if err != nil {
		return err
	}
	options := &corev1.PodLogOptions{Container: containerName, Follow: follow, Timestamps: true}
	if c.Second > 0 {
		options.SinceTime = new(metav1.Unix(c.Second, 0))
	}
	stream, err := l.cluster.client.CoreV1().Pods(l.pod.Namespace).GetLogs(l.pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	return copyLines(stream, c, func(b []byte, offset int64, c cursor) error {
		if err := logFiles(l.path(l.id)).writeAt(b, offset); err != nil {
			return err
		}
		return l.write(l.id, cursorFile, c)
	})
}

// copyLines reads the lines of a log, each after its time and a space, and saves what
// follows the cursor: pieces of the output with their offsets, and the cursor behind their
// last whole line.
func copyLines(log io.Reader, c cursor, save func([]byte, int64, cursor) error) error {
	in, skip, offset := bufio.NewReaderSize(log, logReadBlock), c.Count, c.Offset
	if c.Second > 0 {
		if err := skipRest(in); err != nil {
			return err
		}
	}
	var pending []byte
	begins, skipping, counted := true, false, false
	for {
		b, err := in.ReadSlice('\n')
		ended := len(b) > 0 && b[len(b)-1] == '\n'
		if begins && len(b) > 0 {
			second, text, err := cutTime(b)
			if err != nil {
				return err
			}
			if second > c.Second {
				c.Second, c.Count, skip = second, 0, 0
			}
			b, skipping = text, skip > 0
			counted = !skipping && second == c.Second
			if skipping {
				skip--
			}
			if counted {
				c.Count++
			}
		}
		if !skipping {
			pending = append(pending, b...)
		}
		begins = ended
		if ended && !skipping {
			c.Offset = offset + int64(len(pending))
		}
		if len(pending) > 0 && (err != nil || in.Buffered() == 0 || len(pending) >= logReadBlock) {
			kept := c
			if !begins && counted { // not whole yet
				kept.Count--
			}
			if err := save(pending, offset, kept); err != nil {
				return err
			}
			offset, pending = offset+int64(len(pending)), pending[:0]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// skipRest skips what a log since a second begins with if that is the rest of a line that began
// before, and so is kept: it has no time.
func skipRest(in *bufio.Reader) error {
	const shortest = len("2006-01-02T15:04:05.000000000Z ")
	b, _ := in.Peek(shortest) // with fewer, the stream has ended
	_, _, untimed := cutTime(b)
	if untimed == nil || len(b) == 0 || beginsTime(b) {
		return nil // the caller meets an error
	}
	for ended := false; !ended; ended = bytes.HasSuffix(b, []byte("\n")) {
		var err error
		if b, err = in.ReadSlice('\n'); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return untimed
		}
	}
	if b, _ = in.Peek(1); len(b) == 0 {
		return untimed // not the rest of a line, but what the kubelet says
	}
	return nil
}

// beginsTime reports whether a line begins with a time up to its zone, which can be longer than Z.
func beginsTime(line []byte) bool {
	const fixed = "2006-01-02T15:04:05.000000000"
	if len(line) <= len(fixed) || !strings.ContainsRune("+-", rune(line[len(fixed)])) {
		return false
	}
	_, err := time.Parse(fixed, string(line[:len(fixed)]))
	return err == nil
}

// cutTime splits a line of a log into the second of its time and its text.
func cutTime(line []byte) (second int64, text []byte, err error) {
	stamp, text, _ := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil { // the kubelet writes its own errors to the stream
		return 0, nil, models.Unavailable(fmt.Errorf("%.200q", line), "The log cannot be read now.")
	}
	return at.Unix(), text, nil
}
