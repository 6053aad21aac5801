package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

// maxToken is the most that is read of a token's file, in bytes.
const maxToken = 64 << 10

// join enrols by the cluster's word, and asks until it is let in: the portal
// may be away or not set up yet, the token may be about to be replaced, and an
// administrator may let in again whom another has shut out.
func (c *client) join(ctx context.Context, config Config, known authority.Fingerprint) error {
	if c.state.Server == "" {
		return ErrNotEnrolled
	}
	key, err := authority.NewKey()
	if err != nil {
		return err
	}
	csr, err := authority.NewRequest(key)
	if err != nil {
		return err
	}
	c.speak(authority.PinnedTLS(known, c.clock))
	for failures, said := 1, ""; ; failures++ {
		out, err := c.present(ctx, config, string(csr))
		if err == nil {
			return c.joined(ctx, config, string(key), out)
		}
		level := slog.LevelDebug
		if err.Error() != said { // so that the log tells each reason once
			level, said = slog.LevelWarn, err.Error()
		}
		wait := pause(failures)
		config.Log.Log(ctx, level, "not enrolled by the cluster's word yet; trying again", "in", wait.Round(time.Second), "err", err)
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// pinned reads by what the portal is known.
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

// present shows the token to the portal.
func (c *client) present(ctx context.Context, config Config, csr string) (out providers.Enrolled, err error) {
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
		return "", fmt.Errorf("the token by which the cluster vouches: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(token) > maxToken {
		return "", errors.New("the token by which the cluster vouches: " + file + " holds none")
	}
	return token, nil
}

// joined keeps what the portal gave.
func (c *client) joined(ctx context.Context, config Config, key string, out providers.Enrolled) error {
	models.Failpoint("agent.joined")
	next := state{Server: c.state.Server, Provider: out.Provider, Authority: out.Authority, Token: out.Token,
		Current: credential{Key: key, Certificate: out.Certificate}, Machine: out.Machine, Host: config.Digest}
	if err := c.dir.save(next); err != nil {
		return err
	}
	c.state = next
	config.Log.InfoContext(ctx, "enrolled by the cluster's word", "provider", out.Provider, "state", out.State)
	return nil
}
