package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"syscall"
	"time"

	"weir/handlers"
	"weir/models"
	"weir/workspaces"
)

const (
	runPollPeriod = 500 * time.Millisecond // between looks at a run that waits
	logWait       = 20 * time.Second       // for more output, of one request
	patience      = 5 * time.Minute        // with a server that cannot be reached
	clientLease   = 10 * time.Minute       // of a run whose end is waited for: longer than patience
	inProgress    = 30 * time.Second       // for a request that is repeated: the first one conflicts until it is done
)

// attach shows how a run waits and what it prints, sends it the signals of this process,
// and returns its exit code. A server that is restarted meanwhile is waited for.
func (s *session) attach(r handlers.Run) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(s)) // the first signal is the run's
	defer stop()
	signals, release := ForProgram()
	defer release()
	go s.forward(ctx, r.ID, signals)
	if r.LeaseSeconds > 0 {
		go s.renew(ctx, r.ID, time.Duration(r.LeaseSeconds)*time.Second)
	}

	ended, err := s.follow(ctx, r)
	if err != nil {
		return err
	}
	return programExit(int(*ended.ExitCode))
}

// renew renews the lease of a run until the context ends: without its client, the run ends.
func (s *session) renew(ctx context.Context, id int64, lease time.Duration) {
	ticks := time.NewTicker(lease / 10)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			// Tried again at the next tick, ten of which the lease lasts.
			call, cancel := context.WithTimeout(ctx, lease/10)
			_, _ = s.call(call, http.MethodPost, runPath(id)+"/renew", workspaces.RunRenewal{}, "")
			cancel()
		}
	}
}

// follow shows how a run waits and what it prints until it has ended with an exit code.
func (s *session) follow(ctx context.Context, r handlers.Run) (ended handlers.Run, err error) {
	if err := s.awaitStart(ctx, r); err != nil {
		return r, err
	}
	if err := s.copyLog(ctx, r.ID, true); err != nil {
		return r, err
	}
	err = s.patiently(ctx, func() (err error) {
		ended, _, err = fetch[handlers.Run](ctx, s.client, runPath(r.ID))
		return err
	})
	if err != nil {
		return r, err
	}
	if ended.Reason != "" {
		fmt.Fprintf(s.errOut, "weir: run %d: %s\n", r.ID, clean(ended.Reason))
	}
	if ended.ExitCode == nil {
		return ended, WithExitCode(fmt.Errorf("run %d has ended without an exit code", r.ID), ExitError)
	}
	return ended, nil
}

// awaitStart waits until a run has left the queue, and tells why it waits.
func (s *session) awaitStart(ctx context.Context, r handlers.Run) error {
	told := ""
	for r.State == models.RunQueued {
		if text := waitText(r); text != told && text != "" {
			fmt.Fprintln(s.errOut, "weir: "+clean(text))
			told = text
		}
		time.Sleep(runPollPeriod)
		err := s.patiently(ctx, func() (err error) {
			r, _, err = fetch[handlers.Run](ctx, s.client, runPath(r.ID))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitText is the place of a queued run, its estimated start and the reason.
func waitText(r handlers.Run) string {
	if r.State != models.RunQueued {
		return ""
	}
	text := fmt.Sprintf("run %d waits", r.ID)
	if r.Position > 0 {
		text += fmt.Sprintf(" at position %d", r.Position)
	}
	if r.Estimate != nil {
		text += ", estimated start " + estimate(*r.Estimate)
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// forward sends signals to a run. One that does not run is stopped instead.
func (s *session) forward(ctx context.Context, id int64, signals <-chan os.Signal) {
	names := map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT"}
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			err := s.patiently(ctx, func() error {
				_, err := s.call(ctx, http.MethodPost, runPath(id)+"/signal", handlers.RunSignal{Signal: names[sig]}, "")
				if exitCode(err) == ExitConflict {
					_, err = s.call(ctx, http.MethodPost, runPath(id)+"/stop", nil, "")
				}
				if exitCode(err) == ExitConflict { // it has ended, or ends
					err = nil
				}
				return err
			})
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.errOut, "weir: %v\n", err)
			}
		}
	}
}

// once is a POST that is carried out once, however often the connection is cut off: without
// a response from a server that was reached, it is repeated with the same key.
func (s *session) once(path string, body any) (res response, err error) {
	keyed, reached, answered := *s.client, false, false
	keyed.key = rand.Text()
	ctx := httptrace.WithClientTrace(s, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { reached = true },
		GotFirstResponseByte: func() { answered = true }})
	res, err = keyed.call(ctx, http.MethodPost, path, body, "")
	if exitCode(err) != ExitUnreachable || !reached || answered || s.Err() != nil {
		return res, err
	}
	for began := time.Now(); ; time.Sleep(runPollPeriod) {
		err = s.patiently(s, func() (err error) {
			res, err = keyed.call(s, http.MethodPost, path, body, "")
			return err
		})
		if reportedKind(err) != models.KindConflict || time.Since(began) > inProgress || s.Err() != nil {
			return res, err
		}
	}
}

// patiently repeats a call while the server cannot be reached.
func (s *session) patiently(ctx context.Context, call func() error) error {
	began := time.Now()
	for {
		err := call()
		if exitCode(err) != ExitUnreachable || time.Since(began) > patience || ctx.Err() != nil {
			return err
		}
		time.Sleep(runPollPeriod)
	}
}

// copyLog writes the output of a run: what there is, or if it is followed, until the run has ended.
func (s *session) copyLog(ctx context.Context, id int64, follow bool) error {
	wait, until := 0, int64(math.MaxInt64)
	if follow {
		wait = int(min(logWait, s.http.Timeout/2) / time.Second)
	} else {
		var header http.Header
		err := s.patiently(ctx, func() (err error) { // it reads nothing, and says where the end is
			_, header, err = s.bytes(ctx, fmt.Sprintf("%s/log?offset=%d", runPath(id), until))
			return err
		})
		if err != nil {
			return err
		}
		if until, err = strconv.ParseInt(header.Get("Log-Next"), 10, 64); err != nil {
			return s.unusable(err)
		}
		if until == 0 || until == math.MaxInt64 { // it has printed nothing, or has not started
			return nil
		}
	}
	for offset, ended := int64(0), false; !ended; {
		var data []byte
		var header http.Header
		err := s.patiently(ctx, func() (err error) {
			data, header, err = s.bytes(ctx, fmt.Sprintf("%s/log?offset=%d&wait_seconds=%d", runPath(id), offset, wait))
			return err
		})
		if err != nil {
			return err
		}
		first, err1 := strconv.ParseInt(header.Get("Log-Offset"), 10, 64)
		next, err2 := strconv.ParseInt(header.Get("Log-Next"), 10, 64)
		end, err3 := strconv.ParseBool(header.Get("Log-Ended"))
		if err := errors.Join(err1, err2, err3); err != nil {
			return s.unusable(err)
		}
		if first > offset {
			fmt.Fprintf(s.errOut, "weir: %d bytes of the output are not kept any more\n", first-offset)
		}
		if _, err := s.out.Write(data); err != nil {
			return err
		}
		offset, ended = next, end || next >= until
		if wait == 0 && len(data) == 0 && !ended { // --timeout leaves no time to wait
			time.Sleep(runPollPeriod)
		}
	}
	return nil
}

func runPath(id int64) string { return fmt.Sprintf("/runs/%d", id) }
