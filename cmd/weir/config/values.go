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

	"weir/storage/rules"
)

var gpuModels = []string{"a100", "h100", "h200", "b200"}

// maxGPUs is the number of GPUs of a simulated machine.
const maxGPUs = 8

func parseGPUs(text string) ([]SimulatedGPUs, error) {
	seen := map[string]bool{}
	return listOf(func(part string) (SimulatedGPUs, error) {
		model, digits, _ := strings.Cut(strings.ToLower(part), ":")
		count, err := strconv.Atoi(digits)
		switch {
		case !slices.Contains(gpuModels, model):
			err = fmt.Errorf("unknown model %q; must be one of %s", model, strings.Join(gpuModels, ", "))
		case err != nil || count < 1 || count > maxGPUs:
			err = fmt.Errorf("%q must be a model and a count from 1 to %d, such as %s:8", part, maxGPUs, model)
		case seen[model]:
			err = fmt.Errorf("%s is listed more than once", model)
		}
		seen[model] = true
		return SimulatedGPUs{model, count}, err
	})(text)
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

// ParseOrigin accepts a URL of scheme and host only: the cookies and live pages
// of the portal need the root path.
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

// parseHost accepts what a browser can have in its address: unlike a domain, the name of a
// service of Docker Compose may contain underscores.
func parseHost(text string) (string, error) {
	if _, err := parseDomain(strings.ReplaceAll(text, "_", "x")); err != nil {
		return "", fmt.Errorf("%q must be a host name without a port", text)
	}
	return strings.ToLower(text), nil
}

// parseDir makes a path absolute: processes that use it have other working
// directories.
var parseDir = optional(filepath.Abs)

// parseProxy parses a network or an address.
func parseProxy(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, addrErr := netip.ParseAddr(text); addrErr == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return p, fmt.Errorf("%q must be an address or a network, such as 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}

func parsePostgres(text string) (string, error) {
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

const (
	minIDs  = 10_000
	firstID = 1 << 16   // below it are the users of systems
	lastID  = 1<<31 - 1 // of Kubernetes
)

// parseIDRange parses a range of user and group IDs.
func parseIDRange(text string) (r rules.IDRange, err error) {
	first, last, _ := strings.Cut(text, "-")
	r.First, err = strconv.ParseInt(first, 10, 64)
	if err == nil {
		r.Last, err = strconv.ParseInt(last, 10, 64)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("%q must be a range such as 1900000000-1900999999", text)
	case r.First < firstID || r.Last > lastID:
		return r, fmt.Errorf("%q must be within %d-%d", text, firstID, lastID)
	case r.Last-r.First+1 < minIDs:
		return r, fmt.Errorf("%q is too small: numbers are never used again, so it must have %d IDs at least", text, minIDs)
	}
	return r, nil
}

func durationFrom(minimum time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q must be a duration such as 30s or 1h", text)
		}
		if d < minimum {
			return 0, fmt.Errorf("%s is too short; it must be at least %s", text, minimum)
		}
		return d, nil
	}
}

func durationWithin(minimum, maximum time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := durationFrom(minimum)(text)
		if err == nil && d > maximum {
			return 0, fmt.Errorf("%s is too long; it must be at most %s", text, maximum)
		}
		return d, err
	}
}

// optional also accepts the empty text, as the zero value.
func optional[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (v T, err error) {
		if text == "" {
			return v, nil
		}
		return parse(text)
	}
}

// listOf parses a list separated by commas. Empty parts are skipped.
func listOf[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) (list []T, err error) {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			v, err := parse(part)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
}

// ParseList parses a list separated by commas. Empty parts are skipped. The
// error is always nil.
var ParseList = listOf(anyText)

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
