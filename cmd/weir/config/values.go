package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var gpuModels = []string{"a100", "h100", "h200", "b200"}

// maxGPUs is how many GPUs the simulated machines hold.
const maxGPUs = 8

func parseGPUs(text string) ([]SimulatedGPUs, error) {
	if text == "" {
		return nil, nil
	}
	var gpus []SimulatedGPUs
	for part := range strings.SplitSeq(text, ",") {
		model, digits, _ := strings.Cut(strings.TrimSpace(part), ":")
		model = strings.ToLower(model)
		count, err := strconv.Atoi(digits)
		switch {
		case !slices.Contains(gpuModels, model):
			return nil, fmt.Errorf("unknown model %q; must be one of %s", model, strings.Join(gpuModels, ", "))
		case err != nil || count < 1 || count > maxGPUs:
			return nil, fmt.Errorf("%q must be a model and a count from 1 to %d, such as %s:8", part, maxGPUs, model)
		case slices.ContainsFunc(gpus, func(g SimulatedGPUs) bool { return g.Model == model }):
			return nil, fmt.Errorf("%s is listed more than once", model)
		}
		gpus = append(gpus, SimulatedGPUs{model, count})
	}
	return gpus, nil
}

func parseListen(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q must be host:port, such as 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q must end in a port from 0 to 65535", text)
	}
	return text, nil
}

// ParseOrigin accepts scheme and host alone: the portal lives at the root,
// because its cookies and its live pages do.
func ParseOrigin(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	text = strings.TrimSuffix(text, "/")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%q must be http(s)://host without a path", text)
	}
	return text, nil
}

var domainPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func parseDomain(text string) (string, error) {
	text = strings.ToLower(text)
	if len(text) > 200 || !domainPattern.MatchString(text) {
		return "", fmt.Errorf("%q must be a domain name without a port", text)
	}
	return text, nil
}

// parseDir makes the directory absolute, because processes that are given it
// work elsewhere.
func parseDir(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return filepath.Abs(text)
}

// parseProxies reads networks and single addresses, parted by commas.
func parseProxies(text string) (list []netip.Prefix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if a, addrErr := netip.ParseAddr(part); addrErr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q must be an address or a network, such as 10.0.0.0/8", part)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

func parsePostgres(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	// The parser's own error would repeat the password.
	if _, err := url.Parse(text); err != nil || !strings.HasPrefix(text, "postgres://") {
		return "", errors.New("must be a URL such as postgres://user:password@host:5432/name")
	}
	return text, nil
}

func parseUID(text string) (int, error) {
	uid, err := strconv.ParseInt(text, 10, 32)
	if err != nil || uid < 1 {
		return 0, fmt.Errorf("%q must be the ID of a user other than root", text)
	}
	return int(uid), nil
}

func durationFrom(least time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q must be a duration such as 30s or 1h", text)
		}
		if d < least {
			return 0, fmt.Errorf("%s is too short; it must be at least %s", text, least)
		}
		return d, nil
	}
}

func durationWithin(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := durationFrom(least)(text)
		if err == nil && d > most {
			return 0, fmt.Errorf("%s is too long; it must be at most %s", text, most)
		}
		return d, err
	}
}

// optional makes the empty text good.
func optional(parse func(string) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return parse(text)
	}
}

func anyText(text string) (string, error) { return text, nil }

func parseBool(text string) (bool, error) {
	if _, err := oneOf("true", "false")(text); err != nil {
		return false, err
	}
	return text == "true", nil
}

func oneOf(allowed ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(allowed, text) {
			return "", fmt.Errorf("%q must be one of %s", text, strings.Join(allowed, ", "))
		}
		return text, nil
	}
}
