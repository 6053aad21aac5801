package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

// Run enrolls the agent if needed, and sends heartbeats until ctx ends. The error is
// ErrShutOut if the agent was revoked, except for an agent in a cluster, which
// enrolls again.
func Run(ctx context.Context, c Config) (err error) {
	d, err := openDir(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	cl := &client{dir: d, clock: c.Clock, log: c.Log}
	if cl.state, err = load(d.path); err != nil {
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
	for over := 0; ; over++ { // enrollments that ended soon
		if err := c.ensureEnrolled(ctx, config, over > 0); err != nil || ctx.Err() != nil {
			return err
		}
		if err := c.use(); err != nil {
			return err
		}
		config.Log.InfoContext(ctx, "sending heartbeats", "provider", c.state.Provider, "server", c.state.Server)
		loop.Digest = cmp.Or(c.state.Machine, config.Digest)
		began := time.Now()
		err := loop.Run(ctx)
		if !errors.Is(err, ErrShutOut) || !config.Cluster.enrols() {
			return err
		}
		if time.Since(began) > calm {
			over = 0
		}
		wait := pauseUpTo(calm/10, over+1)
		config.Log.WarnContext(ctx, "enrolling again", "in", wait.Round(time.Second), "err", err)
		if !models.Sleep(ctx, wait) {
			return nil
		}
	}
}

// ensureEnrolled enrolls the agent if needed. In a cluster, an enrollment of another machine
// or portal is replaced: the directory of a node can outlive its installation.
func (c *client) ensureEnrolled(ctx context.Context, config Config, over bool) error {
	if !config.Cluster.enrols() {
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
		config.Log.WarnContext(ctx, "the stored enrollment belongs to another machine or portal; enrolling again")
	}
	return c.join(ctx, config, known)
}

// calm is how long an enrollment must last for the next one to be without backoff,
// which slows down two agents that replace each other.
const calm = 10 * time.Minute

// enrol redeems the code unless it was redeemed. After a crash it continues with the
// same key.
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

// redeem retries until the portal responds; a refusal is final.
func (c *client) redeem(ctx context.Context, config Config, code authority.Code) (out providers.Enrolled, err error) {
	csr, err := authority.NewRequest([]byte(c.state.Joining))
	if err != nil {
		return out, err
	}
	c.useTLS(authority.PinnedTLS(code.Fingerprint, c.clock))
	for failures := 1; ; failures++ {
		devices, err := config.Machine.Devices(ctx)
		if err != nil {
			return out, err
		}
		r := providers.Redemption{Code: code.String(), CSR: string(csr), Name: printable(config.Name, 100), Machine: config.Digest,
			Devices: devices}
		err = c.post(ctx, "/v1/redeem", r, &out)
		refused, ok := errors.AsType[*refusal](err)
		if err == nil || ok && refused.final() || errors.Is(err, authority.ErrStranger) {
			return out, err
		}
		wait := pause(failures)
		config.Log.WarnContext(ctx, "the portal cannot be reached; trying again", "in", wait.Round(time.Second), "err", err)
		if !models.Sleep(ctx, wait) {
			return out, nil
		}
	}
}
