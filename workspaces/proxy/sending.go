package proxy

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
)

const uploadWait = 50 * time.Millisecond // for the end of a body when the response is complete or there is none

var (
	errNotContinued = errors.New("proxy: the notebook responded before the body was sent")
	errBodySize     = errors.New("proxy: the body is shorter than its length")
)

// writeHead sends the request line and the header. The visitor's header has been
// checked by the server that read it.
func writeHead(w *bufio.Writer, r *http.Request) error {
	w.WriteString(r.Method)
	w.WriteByte(' ')
	w.WriteString(r.URL.RequestURI())
	w.WriteString(" HTTP/1.1\r\n")
	writeField(w, "Host", r.Host)
	for name, values := range r.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		for _, value := range values {
			writeField(w, name, value)
		}
	}
	switch {
	case r.Body == nil && r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch:
	case r.ContentLength < 0:
		writeField(w, "Transfer-Encoding", "chunked")
	default:
		writeField(w, "Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	w.WriteString("\r\n")
	return w.Flush()
}

func writeField(w *bufio.Writer, name, value string) {
	w.WriteString(name)
	w.WriteString(": ")
	w.WriteString(value)
	w.WriteString("\r\n")
}

// sending is the sending of a body, which goes on while the response is read.
type sending struct {
	conn     *conn
	body     io.ReadCloser // Close interrupts Read
	length   int64         // -1: unknown
	proceed  chan bool     // whether to send the body, for "Expect: 100-continue"
	finished chan struct{}
	err      error // once finished
}

// startSending sends the body of a request in a goroutine, which ends before abandon
// returns. If the visitor does not send all of it, the connection is closed.
func startSending(c *conn, r *http.Request) *sending {
	s := &sending{conn: c, body: r.Body, length: r.ContentLength, proceed: make(chan bool, 1), finished: make(chan struct{})}
	if !httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		s.decide(true)
	}
	go func() {
		defer close(s.finished)
		s.err = s.send()
	}()
	return s
}

// decide lets the sending begin, or not, unless that was decided before.
func (s *sending) decide(proceed bool) {
	select {
	case s.proceed <- proceed:
	default:
	}
}

func (s *sending) send() error {
	timeout := time.NewTimer(s.conn.pool.continueWait)
	defer timeout.Stop()
	select {
	case proceed := <-s.proceed:
		if !proceed {
			return errNotContinued
		}
	case <-timeout.C:
	}
	out := s.conn.out
	if s.length >= 0 {
		return s.copy(out)
	}
	chunked := httputil.NewChunkedWriter(out)
	if err := s.copy(chunked); err != nil {
		return err
	}
	chunked.Close()
	out.WriteString("\r\n") // no trailer
	return out.Flush()
}

// copy sends each piece of the body at once.
func (s *sending) copy(to io.Writer) error {
	buf := copyBuffers.Get()
	defer copyBuffers.Put(buf)
	for sent := int64(0); ; {
		n, err := s.body.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			if err := s.conn.out.Flush(); err != nil {
				return err
			}
			sent += int64(n)
		}
		if err == io.EOF && s.length >= 0 && sent != s.length {
			err = errBodySize
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			s.conn.Close() // the notebook must not wait for the rest
			return err
		}
	}
}

// ends reports whether the sending has ended, or soon does.
func (s *sending) ends() bool {
	timeout := time.NewTimer(uploadWait)
	defer timeout.Stop()
	select {
	case <-s.finished:
		return true
	case <-timeout.C:
		return false
	}
}
