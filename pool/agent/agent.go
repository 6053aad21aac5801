package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

// Config is what an agent is told.
type Config struct {
	Dir     string // its state directory
	Server  string // see ParseServer; empty: the one of the enrolment
	Code    string // to enrol with; empty, or the one of the enrolment: go on
	Name    string // what the machine calls itself
	Digest  string // of the machine's identity; see providers.MachineDigest
	Machine providers.Machine
	Cluster Cluster
	Clock   func() time.Time // of the machine, which may be wrong; only certificates are checked by it
	Log     *slog.Logger
}

// Cluster is what an agent needs for which its cluster vouches, in place of a
// code. The zero Cluster is none.
type Cluster struct {
	TokenFile string // of the pod's service account; it is read anew each time, for it is replaced
	Authority string // file with the certificate of the portal's authority: nobody else is shown the token
}

func (c Cluster) vouches() bool { return c.TokenFile != "" }

// ErrNotEnrolled says that a state directory holds no enrolment, and that
// there is no code for one.
var ErrNotEnrolled = errors.New("the agent is not enrolled: give it a code and the portal's address")

// Run enrols the agent when there is a code that it has not used, and then
// speaks for the machine until ctx ends. An error that is ErrShutOut says that
// this enrolment is over. Where a cluster vouches for the agent, it enrols by
// that when it has to, and asks again when it was shut out: whether it is let
// in, the portal knows.
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
	defer cl.close()
	return cl.sendHeartbeats(ctx, c)
}

// sendHeartbeats sends heartbeats for a machine until ctx ends or the portal
// rejects the agent; it then enrolls again if the cluster allows it.
func (c *client) sendHeartbeats(ctx context.Context, config Config) error {
	loop := Loop{Portal: c, Machine: config.Machine, Log: config.Log}
	for over := 0; ; over++ { // enrolments, in short time
		if err := c.enter(ctx, config, over > 0); err != nil || ctx.Err() != nil {
			return err
		}
		if err := c.use(); err != nil {
			return err
		}
		config.Log.InfoContext(ctx, "speaking for this machine", "provider", c.state.Provider, "server", c.state.Server)
		loop.Digest = cmp.Or(c.state.Machine, config.Digest)
		began := time.Now()
		err := loop.Run(ctx)
		if !errors.Is(err, ErrShutOut) || !config.Cluster.vouches() {
			return err
		}
		if time.Since(began) > calm {
			over = 0
		}
		wait := pauseUpTo(calm/10, over+1)
		config.Log.WarnContext(ctx, "enrolling again by the cluster's word", "in", wait.Round(time.Second), "err", err)
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// enter sees to it that there is an enrolment. Where the cluster vouches, an
// agent joins that has none, one that is over, or that of another machine or
// portal: the directory of a node outlives what was installed there.
func (c *client) enter(ctx context.Context, config Config, over bool) error {
	if !config.Cluster.vouches() {
		return c.enrol(ctx, config)
	}
	known, err := pinned(config.Cluster.Authority)
	if err != nil {
		return err
	}
	if !over && c.state.Current.Certificate != "" {
		was, err := authority.FingerprintOf([]byte(c.state.Authority))
		if err == nil && was == known && (c.state.Host == "" || c.state.Host == config.Digest) {
			return nil
		}
		config.Log.WarnContext(ctx, "what this agent has kept is of another machine or portal; it enrols anew")
	}
	return c.join(ctx, config, known)
}

// calm is how long an enrolment has to last for the next one not to be put
// off: two agents that replace each other must not do it all the time.
const calm = 10 * time.Minute

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
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
	c.state.Joining, c.state.JoiningCode, c.state.Machine, c.state.Host = "", "", "", ""
	if err := c.dir.save(c.state); err != nil {
		return err
	}
	models.Failpoint("agent.enrolled")
	config.Log.InfoContext(ctx, "enrolled", "provider", out.Provider, "state", out.State)
	return nil
}

// redeem asks until the portal answers; a refusal is final.
func (c *client) redeem(ctx context.Context, config Config, code authority.Code) (out providers.Enrolled, err error) {
	csr, err := authority.NewRequest([]byte(c.state.Joining))
	if err != nil {
		return out, err
	}
	c.speak(authority.PinnedTLS(code.Fingerprint, c.clock))
	for failures := 1; ; failures++ {
		devices, err := config.Machine.Devices(ctx)
		if err != nil {
			return out, err
		}
		r := providers.Redemption{Code: code.String(), CSR: string(csr), Name: visible(config.Name, 100), Machine: config.Digest, Devices: devices}
		err = c.post(ctx, "/v1/redeem", r, &out)
		refused := (*refusal)(nil)
		if err == nil || errors.As(err, &refused) && refused.final() || errors.Is(err, authority.ErrStranger) {
			return out, err
		}
		wait := pause(failures)
		config.Log.WarnContext(ctx, "the portal cannot be reached; trying again", "in", wait.Round(time.Second), "err", err)
		if !sleep(ctx, wait) {
			return out, nil
		}
	}
}
