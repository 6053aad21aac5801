package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"weir/models"
	"weir/pool"
	"weir/pool/authority"
)

// Config is what an agent is told.
type Config struct {
	Dir     string // its state directory
	Server  string // see ParseServer; empty: the one of the enrolment
	Code    string // to enrol with; empty, or the one of the enrolment: go on
	Name    string // what the machine calls itself
	Digest  string // of the machine's identity; see pool.MachineDigest
	Machine pool.Machine
	Clock   func() time.Time // of the machine, which may be wrong; only certificates are checked by it
	Log     *slog.Logger
}

// ErrNotEnrolled says that a state directory holds no enrolment, and that
// there is no code for one.
var ErrNotEnrolled = errors.New("the agent is not enrolled: give it a code and the portal's address")

// Run enrols the agent when there is a code that it has not used, and then
// speaks for the machine until ctx ends. An error that is ErrShutOut says that
// this enrolment is over.
func Run(ctx context.Context, c Config) (err error) {
	d, err := openDir(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	cl := &client{dir: d, clock: c.Clock, log: c.Log}
	if cl.state, err = d.load(); err != nil {
		return err
	}
	if c.Server != "" {
		cl.state.Server = c.Server
	}
	if err := cl.enrol(ctx, c); err != nil || ctx.Err() != nil {
		return err
	}
	if err := cl.use(); err != nil {
		return err
	}
	defer func() { cl.http.CloseIdleConnections() }()
	c.Log.InfoContext(ctx, "speaking for this machine", "provider", cl.state.Provider, "server", cl.state.Server)
	loop := Loop{Portal: cl, Machine: c.Machine, Digest: c.Digest, Log: c.Log}
	return loop.Run(ctx)
}

// enrol redeems the code, unless that has been done. What was begun with a
// code before a crash goes on with the same key.
func (c *client) enrol(ctx context.Context, config Config) error {
	if config.Code == "" {
		if c.state.Current.Certificate == "" {
			return ErrNotEnrolled
		}
		return nil
	}
	code, err := authority.ParseCode(config.Code)
	if err != nil {
		return fmt.Errorf("the code cannot be read: %w", err)
	}
	if code.Hash() == c.state.Code {
		return nil
	}
	if c.state.Server == "" {
		return ErrNotEnrolled
	}
	if c.state.JoiningCode != code.Hash() {
		key, err := authority.NewKey()
		if err != nil {
			return err
		}
		c.state.Joining, c.state.JoiningCode = string(key), code.Hash()
		if err := c.dir.save(c.state); err != nil {
			return err
		}
	}
	models.Failpoint("agent.key")
	out, err := c.redeem(ctx, config, code)
	if err != nil || ctx.Err() != nil {
		return err
	}
	models.Failpoint("agent.redeemed")
	c.state.Current, c.state.Next = credential{Key: c.state.Joining, Certificate: out.Certificate}, credential{}
	c.state.Authority, c.state.Provider, c.state.Token, c.state.Code = out.Authority, out.Provider, out.Token, code.Hash()
	c.state.Joining, c.state.JoiningCode = "", ""
	if err := c.dir.save(c.state); err != nil {
		return err
	}
	models.Failpoint("agent.enrolled")
	config.Log.InfoContext(ctx, "enrolled", "provider", out.Provider, "state", out.State)
	return nil
}

// redeem asks until the portal answers; a refusal is final.
func (c *client) redeem(ctx context.Context, config Config, code authority.Code) (out pool.Enrolled, err error) {
	csr, err := authority.NewRequest([]byte(c.state.Joining))
	if err != nil {
		return out, err
	}
	c.http = newHTTP(authority.PinnedTLS(code.Fingerprint, c.clock))
	for failures := 1; ; failures++ {
		devices, err := config.Machine.Devices(ctx)
		if err != nil {
			return out, err
		}
		r := pool.Redemption{Code: code.String(), CSR: string(csr), Name: visible(config.Name, 100), Machine: config.Digest, Devices: devices}
		err = c.say(ctx, "/v1/redeem", r, &out)
		refused := (*refusal)(nil)
		if err == nil || errors.As(err, &refused) && refused.final() || errors.Is(err, authority.ErrStranger) {
			return out, err
		}
		wait := pause(failures)
		config.Log.WarnContext(ctx, "the portal cannot be reached; trying again", "in", wait.Round(time.Second), "err", err)
		select {
		case <-ctx.Done():
			return out, nil
		case <-time.After(wait):
		}
	}
}
