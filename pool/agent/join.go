package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

// maxToken bounds the size of a token, in bytes.
const maxToken = 64 << 10

// join enrolls with the pod's token, and retries until it succeeds, also after
// refusals: the portal may not be set up yet, the token may be rotated, and an
// administrator may authorize the node again.
func (c *client) join(ctx context.Context, config Config, known authority.Fingerprint) error {
	if c.state.Server == "" {
		return ErrNotEnrolled
	}
	key, csr, err := newKey()
	if err != nil {
		return err
	}
	c.useTLS(authority.PinnedTLS(known, c.clock))
	for failures, last := 1, ""; ; failures++ {
		out, err := c.sendToken(ctx, config, csr)
		if err == nil {
			return c.saveJoined(ctx, config, key, out)
		}
		level := slog.LevelDebug
		if err.Error() != last { // log each reason once
			level, last = slog.LevelWarn, err.Error()
		}
		wait := pause(failures)
		config.Log.Log(ctx, level, "not enrolled yet; trying again", "in", wait.Round(time.Second), "err", err)
		if !models.Sleep(ctx, wait) {
			return nil
		}
	}
}

// pinned reads the fingerprint of the portal's authority.
func pinned(file string) (f authority.Fingerprint, err error) {
	raw, err := os.ReadFile(file)
	if err == nil {
		f, err = authority.FingerprintOf(raw)
	}
	if err != nil {
		err = fmt.Errorf("the certificate of the portal's authority: %w", err)
	}
	return f, err
}

// sendToken sends the token to the portal.
func (c *client) sendToken(ctx context.Context, config Config, csr string) (out providers.Enrolled, err error) {
	token, err := readToken(config.Cluster.TokenFile)
	if err != nil {
		return out, err
	}
	devices, err := config.Machine.Devices(ctx)
	if err != nil {
		return out, err
	}
	err = c.post(ctx, "/v1/join", providers.Joining{Token: token, CSR: csr, Machine: config.Digest, Devices: devices}, &out)
	return out, err
}

func readToken(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the pod's token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(token) > maxToken {
		return "", fmt.Errorf("the pod's token: %s is empty or too long", file)
	}
	return token, nil
}

// saveJoined stores the enrollment.
func (c *client) saveJoined(ctx context.Context, config Config, key string, out providers.Enrolled) error {
	models.Failpoint("agent.joined")
	next := state{Server: c.state.Server, Provider: out.Provider, Authority: out.Authority, Token: out.Token,
		Current: credential{Key: key, Certificate: out.Certificate}, Machine: out.Machine, Host: config.Digest}
	if err := c.save(next); err != nil {
		return err
	}
	config.Log.InfoContext(ctx, "enrolled", "provider", out.Provider, "state", out.State)
	return nil
}
